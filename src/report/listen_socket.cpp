// SPDX-License-Identifier: Apache-2.0

#include "report/listen_socket.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster {
namespace {

Error system_error(const char* what, const std::string& path) {
    const std::string reason = std::generic_category().message(errno);
    return Error{ErrorCode::System, fmt::format("cannot {} {}: {}", what, path, reason)};
}

Status check_private(const std::string& run_dir) {
    struct stat info {};
    if (::lstat(run_dir.c_str(), &info) != 0) {
        return system_error("look at", run_dir);
    }
    constexpr mode_t kOthers = 077;
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & kOthers) != 0) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "{} must be a directory of user {} alone (mode 0700), to hold the report socket; "
                "it has mode {:o} and belongs to user {}",
                run_dir,
                ::geteuid(),
                info.st_mode & 07777U,
                info.st_uid
            )};
    }
    return Ok{};
}

}  // namespace

Result<UniqueFd> listen_in(const std::string& run_dir, std::string& path) {
    const Status is_private = check_private(run_dir);
    if (!is_private) {
        return is_private.error();
    }
    path = run_dir + "/report";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "the path of the report socket, {}, has {} bytes; a socket's path has at most {}: "
                "set TMPDIR to a shorter directory",
                path,
                path.size(),
                sizeof address.sun_path - 1
            )};
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) {
        return system_error("open a socket for", path);
    }
    // The directory is private, so what is in the way is a leftover of ours.
    ::unlink(path.c_str());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(fd.get(), generic, sizeof address) != 0) {
        return system_error("make the socket", path);
    }
    if (::chmod(path.c_str(), 0600) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
        return system_error("listen at", path);
    }
    return fd;
}

std::optional<Client> accept_client(int listener, AcceptEnd& end) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
        const bool full = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        end = full ? AcceptEnd::Full : AcceptEnd::Empty;
        return std::nullopt;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        peer.uid != ::geteuid()) {
        end = AcceptEnd::Stranger;
        return std::nullopt;
    }
    return Client{std::move(fd), peer.pid};
}

}  // namespace muster
