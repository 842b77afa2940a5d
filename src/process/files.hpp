// SPDX-License-Identifier: Apache-2.0
//
// files - the few file operations that keepers share: made as private as a run's files are, with
// the directories on the way, and with messages that name the path.

#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster {

/// "`what`: <the system's text for `error_number`>".
Error system_error(const std::string& what, int error_number);

/// The system's text for an errno.
std::string errno_text(int error_number);

/// Makes `path` and what is missing above it, mode 0700. 0, or errno. One call when only the last
/// part is missing.
int make_directories(const std::string& path);

/// As that, but only the last directory of `path` may be missing: what is above it belongs to
/// others, and is not made again when it went away.
int make_directory(const std::string& path);

/// Writes a new file, mode 0600, over what was there. 0, or errno.
int write_file(const std::string& path, std::string_view content);

/// Opens with O_CREAT, mode 0600, and makes missing directories. -1 leaves errno.
int open_making_directories(const std::string& path, int flags);
/// As that, but makes no more than the directory that the file is in.
int open_making_directory(const std::string& path, int flags);

/// For appending, made if it is missing. Errors: System.
Result<UniqueFd> open_for_append(const std::string& path);

}  // namespace muster
