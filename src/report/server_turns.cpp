// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report/listen_socket.hpp"
#include "report/server_state.hpp"

namespace muster {
namespace {

constexpr ConnectionId kListener = 0;
constexpr ConnectionId kWakeUp = 1;

constexpr std::size_t kDrainBytes = std::size_t{4} << 20U;
/// A longer line counts as several, so that a call's memory is bounded too.
constexpr std::size_t kLineUnit = 1024;
constexpr int kAcceptsAtOnce = 256;

/// Half of what the process may open: the rest is the agent's.
std::size_t connection_limit() {
    constexpr std::size_t kLeast = 16;
    constexpr std::size_t kMost = 8192;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return kLeast;
    }
    return std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 2, kLeast, kMost);
}

}  // namespace

// --- connections ---

ReportServerState::~ReportServerState() {
    if (listener) {
        ::unlink(path.c_str());
    }
}

bool ReportServerState::watch(int operation, ConnectionId id, int fd, std::uint32_t what) const {
    epoll_event event{};
    event.events = what;
    event.data.u64 = id;
    return ::epoll_ctl(epoll.get(), operation, fd, &event) == 0;
}

Status ReportServerState::open() {
    limit = connection_limit();
    epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    wake_up = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll || !wake_up || !watch(EPOLL_CTL_ADD, kListener, listener.get(), EPOLLIN) ||
        !watch(EPOLL_CTL_ADD, kWakeUp, wake_up.get(), EPOLLIN)) {
        const std::string reason = std::generic_category().message(errno);
        return Error{ErrorCode::System, "cannot wait for reports at " + path + ": " + reason};
    }
    return Ok{};
}

void ReportServerState::set_accepting(bool wanted) {
    if (accepting != wanted) {
        accepting = wanted;
        watch(EPOLL_CTL_MOD, kListener, listener.get(), wanted ? EPOLLIN : 0U);
    }
}

/// Makes room at the cost of the oldest connection that has not said who it is. One whose turn is
/// still to come may have said it already.
bool ReportServerState::evict_stranger() {
    const std::optional<ConnectionId> silent = silent_stranger();
    if (silent) {
        close(*silent);
    }
    return silent.has_value();
}

std::optional<ConnectionId> ReportServerState::silent_stranger() const {
    for (const ConnectionId id : strangers) {
        if (!connections.at(id).queued) {
            return id;
        }
    }
    return std::nullopt;
}

void ReportServerState::accept_some() {
    for (int count = 0; count < kAcceptsAtOnce; ++count) {
        if (connections.size() >= limit && !evict_stranger()) {
            set_accepting(false);
            return;
        }
        AcceptEnd end = AcceptEnd::Empty;
        std::optional<Client> client = accept_client(listener.get(), end);
        if (!client && end == AcceptEnd::Empty) {
            return;
        }
        if (!client && end == AcceptEnd::Full && !evict_stranger()) {
            set_accepting(false);
            return;
        }
        if (!client) {
            continue;
        }
        const ConnectionId id = next_id++;
        const int fd = client->fd.get();
        if (watch(EPOLL_CTL_ADD, id, fd, EPOLLIN)) {
            Connection& connection =
                connections.try_emplace(id, std::move(client->fd), client->pid).first->second;
            connection.watched = EPOLLIN;
            strangers.insert(id);
            // What a client says comes with it, nearly always.
            connection.readable = true;
            enqueue(id, connection);
        }
    }
}

void ReportServerState::close(ConnectionId id) {
    const auto found = connections.find(id);
    if (found == connections.end()) {
        return;
    }
    if (found->second.member) {
        const auto member = members.find(*found->second.member);
        if (member != members.end()) {
            member->second.connections.erase(id);
        }
    }
    strangers.erase(id);
    connections.erase(found);
    set_accepting(true);
}

void ReportServerState::enqueue(ConnectionId id, Connection& connection) {
    if (!connection.queued) {
        connection.queued = true;
        work.push_back(id);
    }
}

/// After a connection had its turn: it goes, waits for the kernel, or stands in line again.
void ReportServerState::settle(ConnectionId id) {
    Connection& connection = connections.at(id);
    if (connection.doomed || connection.is_over()) {
        close(id);
        return;
    }
    if (!connection.is_blocked() && connection.has_line()) {
        enqueue(id, connection);
    }
    const bool listen = !connection.ended() && !connection.is_blocked();
    const std::uint32_t wanted = (listen ? std::uint32_t{EPOLLIN} : 0U) |
                                 (connection.wants_flush() ? std::uint32_t{EPOLLOUT} : 0U);
    if (wanted != connection.watched) {
        connection.watched = wanted;
        watch(EPOLL_CTL_MOD, id, connection.fd(), wanted);
    }
}

// --- turns ---

void ReportServerState::poll_kernel() {
    std::array<epoll_event, 256> ready{};
    const int count = ::epoll_wait(epoll.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int index = 0; index < count; ++index) {
        const epoll_event& event = ready.at(static_cast<std::size_t>(index));
        const ConnectionId id = event.data.u64;
        if (id == kListener) {
            accept_some();
            continue;
        }
        const auto found = connections.find(id);
        if (found == connections.end()) {
            continue;
        }
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
            // Nobody waits for an answer, and the kernel would go on saying so until there is one.
            found->second.drop_answers();
        }
        found->second.flush();
        found->second.readable = true;
        enqueue(id, found->second);
    }
}

void ReportServerState::answer_waiting() {
    for (const ConnectionId id : std::exchange(waiting, {})) {
        const auto found = connections.find(id);
        if (found == connections.end() || !found->second.owes_decision) {
            continue;
        }
        const auto member = members.find(*found->second.member);
        found->second.owes_decision = false;
        const bool stop = member != members.end() && member->second.stop_told;
        found->second.send(decision_line(found->second.lines_taken(), stop));
        settle(id);
    }
}

void ReportServerState::answer_checkpoint(ConnectionId id, const std::string& line) {
    Connection& connection = connections.at(id);
    if (connection.owes_checkpoint) {
        connection.owes_checkpoint = false;
        connection.send(line);
        settle(id);
        set_wake_up();
    }
}

void ReportServerState::set_wake_up() {
    const bool wanted = !work.empty() || !waiting.empty();
    if (wanted != awake) {
        awake = wanted;
        std::uint64_t one = 1;
        // Neither can fail or block: the counter goes from 0 to 1 and back.
        [[maybe_unused]] const ssize_t done = wanted ? ::write(wake_up.get(), &one, sizeof one)
                                                     : ::read(wake_up.get(), &one, sizeof one);
    }
}

std::size_t ReportServerState::serve(
    Connection& connection,
    ConnectionId id,
    std::size_t most,
    std::vector<AgentEvent>& events
) {
    std::size_t used = 0;
    while (used < most && !connection.doomed && !connection.is_blocked()) {
        std::string_view line;
        const Connection::Take take = connection.take_line(line);
        if (take == Connection::Take::Nothing) {
            const bool has_read =
                connection.readable && connection.read_some(scratch.data(), scratch.size());
            // What came last may be a line without its end.
            if (!has_read && !connection.has_line()) {
                break;
            }
            continue;
        }
        used += 1 + line.size() / kLineUnit;
        if (take == Connection::Take::TooLong) {
            refuse(connection, "a line longer than 1 MiB", events);
        } else {
            handle(connection, id, line, events);
        }
    }
    return used;
}

void ReportServerState::drain(
    ConnectionId id,
    const MemberKey& key,
    std::vector<AgentEvent>& events
) {
    Connection& connection = connections.at(id);
    std::size_t bytes = 0;
    bool more = true;
    while (more && !connection.doomed) {
        if (connection.member && *connection.member != key) {
            // A client of another member that was not heard yet: its turn comes.
            break;
        }
        connection.drop_answers();
        if (serve(connection, id, 1, events) == 0) {
            more = bytes < kDrainBytes &&
                   (connection.read_some(scratch.data(), scratch.size()) || connection.has_line());
            bytes += scratch.size();
        }
    }
    settle(id);
}

}  // namespace muster
