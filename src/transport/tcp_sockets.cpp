// SPDX-License-Identifier: Apache-2.0

#include "transport/tcp_sockets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.hpp"

namespace muster {
namespace {

/// Open MPI's handshake is 24 bytes each way, and one for the SYN may be counted. A frame has more.
constexpr std::uint64_t kMoreThanHandshake = 64;

std::optional<ino_t> socket_inode(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return std::nullopt;
    }
    return status.st_ino;
}

bool is_there(const TcpSockets::Id& id) {
    return socket_inode(id.fd) == id.inode;
}

int option(int fd, int name) {
    int value = 0;
    socklen_t length = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

std::optional<SocketAddress> as_address(const sockaddr_storage& storage) {
    SocketAddress address;
    if (storage.ss_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &storage, sizeof v4);
        address.ip[10] = 0xff;
        address.ip[11] = 0xff;
        std::memcpy(&address.ip[12], &v4.sin_addr, 4);
        address.port = ntohs(v4.sin_port);
        return address;
    }
    if (storage.ss_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &storage, sizeof v6);
        std::memcpy(address.ip.data(), &v6.sin6_addr, address.ip.size());
        address.port = ntohs(v6.sin6_port);
        return address;
    }
    return std::nullopt;
}

/// Nothing while it is not connected.
std::optional<SocketEnds> ends_of(int fd) {
    using NameFunction = int (*)(int, sockaddr*, socklen_t*);
    const auto ask = [fd](NameFunction function) -> std::optional<SocketAddress> {
        sockaddr_storage storage{};
        socklen_t length = sizeof storage;
        // The socket API's own form.
        auto* name = reinterpret_cast<sockaddr*>(&storage);
        return function(fd, name, &length) == 0 ? as_address(storage) : std::nullopt;
    };
    const std::optional<SocketAddress> local = ask(::getsockname);
    const std::optional<SocketAddress> remote = ask(::getpeername);
    if (!local || !remote) {
        return std::nullopt;
    }
    return SocketEnds{*local, *remote};
}

std::optional<tcp_info> info_of(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return std::nullopt;
    }
    return info;
}

bool in_use(int fd) {
    const std::optional<tcp_info> info = info_of(fd);
    return info && std::max<std::uint64_t>(info->tcpi_bytes_received, info->tcpi_bytes_acked) >
                       kMoreThanHandshake;
}

/// Nothing more will come out of it.
bool is_over(const TcpSockets::Id& id) {
    if (!is_there(id)) {
        return true;
    }
    constexpr int kEstablished = 1;
    const std::optional<tcp_info> info = info_of(id.fd);
    int unread = 0;
    return info && info->tcpi_state != kEstablished && ::ioctl(id.fd, SIOCINQ, &unread) == 0 &&
           unread == 0;
}

std::uint64_t network_identity() {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    std::array<char, 128> link{};
    const ssize_t length = ::readlink("/proc/self/ns/net", link.data(), link.size());
    if (length > 0) {
        text.append(link.data(), static_cast<std::size_t>(length));
    }
    // FNV-1a: the same in every process.
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char character : text) {
        hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
    }
    return hash;
}

}  // namespace

std::vector<TcpSockets::Id> TcpSockets::open_now() {
    std::vector<Id> found;
    DIR* directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) {
        return found;
    }
    // Each thread reads a stream of its own.
    while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe)
        const std::string_view name = entry->d_name;
        int fd = -1;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), fd);
        if (parsed.ec != std::errc() || fd <= STDERR_FILENO) {
            continue;
        }
        const std::optional<ino_t> inode = socket_inode(fd);
        if (!inode) {
            continue;
        }
        const int domain = option(fd, SO_DOMAIN);
        if ((domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE) == SOCK_STREAM) {
            found.push_back({fd, *inode});
        }
    }
    ::closedir(directory);
    std::sort(found.begin(), found.end());
    return found;
}

TcpSockets::TcpSockets(std::vector<Id> not_mpi)
    : not_mpi_(std::move(not_mpi)),
      network_(network_identity()) {
    std::sort(not_mpi_.begin(), not_mpi_.end());
}

void TcpSockets::scan() {
    std::map<Id, Socket> known;
    for (const Socket& socket : sockets_) {
        known.emplace(socket.id, socket);
    }
    sockets_.clear();
    polled_.clear();
    for (const Id& id : open_now()) {
        if (std::binary_search(not_mpi_.begin(), not_mpi_.end(), id)) {
            continue;
        }
        Socket socket;
        if (const auto place = known.find(id); place != known.end()) {
            socket = place->second;
            known.erase(place);
        } else {
            socket.id = id;
            socket.listening = option(id.fd, SO_ACCEPTCONN) == 1;
            ::fcntl(id.fd, F_SETFD, FD_CLOEXEC);
        }
        socket.idle_wakes = 0;
        if (!socket.listening && !socket.ends) {
            socket.ends = ends_of(id.fd);
        }
        sockets_.push_back(socket);
    }
    for (const auto& [id, socket] : known) {
        if (socket.rank) {
            ended_.push_back(*socket.rank);
        }
    }
    // Until take_ended() has told of it.
    dirty_ =
        !ended_.empty() || std::any_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) {
            return socket.ending && socket.rank;
        });
}

bool TcpSockets::listening() const {
    return std::any_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) {
        return socket.listening;
    });
}

void TcpSockets::add_poll_fds(std::vector<pollfd>& fds, std::span<const std::uint32_t> writing) {
    polled_.clear();
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
        const Socket& socket = sockets_[i];
        if (!socket.ending && socket.idle_wakes < kMostIdleWakes) {
            const bool writes =
                socket.rank &&
                std::find(writing.begin(), writing.end(), *socket.rank) != writing.end();
            polled_.push_back(i);
            const int events = POLLIN | POLLRDHUP | (writes ? POLLOUT : 0);
            fds.push_back({socket.id.fd, static_cast<short>(events), 0});
        }
    }
}

void TcpSockets::polled(std::span<const pollfd> fds) {
    check(fds.size() == polled_.size(), "what was added to a poll comes back");
    for (std::size_t i = 0; i < fds.size(); ++i) {
        Socket& socket = sockets_[polled_[i]];
        const int events = fds[i].revents;
        if ((events & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP)) != 0) {
            // A socket that is not connected yet says POLLHUP as well.
            socket.ending = socket.ends.has_value();
            dirty_ = true;
        } else if ((events & POLLIN) != 0) {
            dirty_ = dirty_ || socket.listening;
            ++socket.idle_wakes;
        }
    }
}

void TcpSockets::count_as_read() {
    for (Socket& socket : sockets_) {
        socket.idle_wakes = 0;
    }
}

Introduction TcpSockets::unclaimed() const {
    Introduction introduction{network_, {}};
    for (const Socket& socket : sockets_) {
        if (socket.ends && !socket.rank && !socket.ending && in_use(socket.id.fd) &&
            introduction.ends.size() < kMostEnds) {
            introduction.ends.push_back(*socket.ends);
        }
    }
    return introduction;
}

Introduction TcpSockets::claim(std::uint32_t rank, const Introduction& theirs) {
    Introduction mine{network_, {}};
    for (Socket& socket : sockets_) {
        if (!socket.ends || (socket.rank && *socket.rank != rank) ||
            !same_connection(*socket.ends, network_, theirs) || !is_there(socket.id) ||
            !in_use(socket.id.fd)) {
            continue;
        }
        if (!socket.rank) {
            socket.rank = rank;
            claimed_[rank].push_back(socket.id);
        }
        if (mine.ends.size() < kMostEnds) {
            mine.ends.push_back(*socket.ends);
        }
    }
    return mine;
}

bool TcpSockets::sound(std::uint32_t rank) {
    const auto place = claimed_.find(rank);
    if (place == claimed_.end()) {
        return true;
    }
    for (const Id& id : place->second) {
        pollfd look{id.fd, POLLRDHUP, 0};
        if (!is_there(id) || (::poll(&look, 1, 0) == 1 && look.revents != 0)) {
            for (Socket& socket : sockets_) {
                socket.ending = socket.ending || socket.id == id;
            }
            dirty_ = true;
            return false;
        }
    }
    return true;
}

std::vector<std::uint32_t> TcpSockets::take_ended() {
    for (Socket& socket : sockets_) {
        if (socket.rank && socket.ending && is_over(socket.id)) {
            ended_.push_back(*socket.rank);
            socket.rank.reset();
        }
    }
    std::vector<std::uint32_t> ranks;
    std::sort(ended_.begin(), ended_.end());
    for (const std::uint32_t rank : ended_) {
        if (claimed_.erase(rank) == 1) {
            ranks.push_back(rank);
        }
    }
    ended_.clear();
    for (Socket& socket : sockets_) {
        if (socket.rank && claimed_.count(*socket.rank) == 0) {
            socket.rank.reset();
        }
    }
    return ranks;
}

}  // namespace muster
