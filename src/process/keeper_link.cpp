// SPDX-License-Identifier: Apache-2.0
#include "process/keeper_link.hpp"

#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "process/files.hpp"

namespace muster {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;

}  // namespace

void KeeperLink::send_some() {
    std::size_t sent = 0;
    waits_to_write = false;
    while (fd && sent < outbox.size()) {
        const ssize_t wrote = ::send(
            fd.get(), outbox.data() + sent, outbox.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL
        );
        if (wrote >= 0) {
            sent += static_cast<std::size_t>(wrote);
        } else if (errno == EAGAIN) {
            waits_to_write = true;
            break;
        } else if (errno != EINTR) {
            // Its end of file comes next, and says the rest.
            sent = outbox.size();
        }
    }
    outbox.erase(0, sent);
}

void KeeperLink::receive_some() {
    static thread_local std::array<char, kPieceBytes> buffer;
    const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
        inbox.append({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_of_file = true;
    }
}

Outcome KeeperLink::why_lost(bool spawner_alive) const {
    Outcome outcome{.cause = EndCause::Lost, .code = 0, .detail = {}};
    if (fork_error != 0) {
        outcome.cause = EndCause::SpawnFailed;
        outcome.code = fork_error;
        outcome.detail = fmt::format(
            "cannot start a keeper: {}; see 'ulimit -u' and 'ulimit -n'", errno_text(fork_error)
        );
    } else if (wait_status && WIFSIGNALED(*wait_status)) {
        outcome.detail = fmt::format(
            "its keeper (process {}) was ended by signal {}, so its processes were killed",
            pid,
            WTERMSIG(*wait_status)
        );
    } else if (!spawner_alive) {
        outcome.detail = "the process that starts trials is gone, so its processes were killed";
    } else {
        outcome.detail = fmt::format("its keeper (process {}) is gone", pid);
    }
    return outcome;
}

}  // namespace muster
