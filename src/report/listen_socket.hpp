// SPDX-License-Identifier: Apache-2.0
//
// listen_socket - a Unix socket that nobody but this user can reach.

#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster {

/// A non-blocking listening socket at `run_dir`/report.
/// Errors: as ReportServer::listen().
Result<UniqueFd> listen_in(const std::string& run_dir, std::string& path);

/// A client that is of this user, with its process.
struct Client {
    UniqueFd fd;
    pid_t pid = 0;
};

enum class AcceptEnd {
    /// Nobody else is waiting.
    Empty,
    /// The process has no descriptors left.
    Full,
    /// A client of another user was turned away.
    Stranger,
};

/// The next waiting client, or why there is none. Never blocks.
std::optional<Client> accept_client(int listener, AcceptEnd& end);

}  // namespace muster
