// SPDX-License-Identifier: Apache-2.0
#include "process/spawner_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"
#include "process/keeper.hpp"
#include "process/process_tree.hpp"
#include "process/reaper.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Between two passes over orphans that would not die at once.
constexpr milliseconds kHuntInterval{20};
/// Keepers get so long to end their members once the agent is gone.
constexpr seconds kKeepersLeave{5};
/// And all that is left after that so long to be killed.
constexpr seconds kGiveUp{30};
constexpr int kKeeperSocket = 3;

class SpawnerLoop {
  public:
    SpawnerLoop(int socket, pid_t parent, UniqueFd signals, const TrialFunctions& functions)
        : socket_(socket),
          parent_(parent),
          signals_(std::move(signals)),
          functions_(functions) {}

    void run();

  private:
    void poll_once();
    void receive();
    void fork_keeper(std::uint32_t id, UniqueFd socket);
    void on_signals();
    void reap();
    void hunt_orphans();
    void leave();
    void on_deadlines(Clock::time_point now);
    void note(SpawnerNote note) { notes_.push_back(note); }
    void send_notes();
    std::vector<pid_t> orphans() const;

    UniqueFd socket_;
    pid_t parent_;
    UniqueFd signals_;
    const TrialFunctions& functions_;
    std::map<pid_t, std::uint32_t> keepers_;
    /// Keepers that ended while something that they held may be left.
    std::vector<SpawnerNote> ended_;
    std::deque<SpawnerNote> notes_;
    bool hunting_ = false;
    std::optional<Clock::time_point> left_at_;
    bool keepers_killed_ = false;
};

void SpawnerLoop::run() {
    while (!left_at_ || !keepers_.empty() || hunting_) {
        poll_once();
        if (left_at_) {
            const Clock::time_point now = Clock::now();
            on_deadlines(now);
            if (now > *left_at_ + kKeepersLeave + kGiveUp) {
                return;
            }
        }
        send_notes();
    }
}

void SpawnerLoop::poll_once() {
    const auto events = static_cast<short>(notes_.empty() ? POLLIN : POLLIN | POLLOUT);
    std::array<pollfd, 2> fds{
        pollfd{.fd = left_at_ ? -1 : socket_.get(), .events = events, .revents = 0},
        pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
    };
    const int timeout = hunting_ || left_at_ ? static_cast<int>(kHuntInterval.count()) : -1;
    const int ready = ::poll(fds.data(), fds.size(), timeout);
    if (ready > 0 && fds[1].revents != 0) {
        on_signals();
    }
    if (hunting_) {
        hunt_orphans();
    }
    if (ready > 0 && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        receive();
    }
}

void SpawnerLoop::receive() {
    KeeperRequest request;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{.iov_base = &request, .iov_len = sizeof request};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got != sizeof request) {
        leave();
        return;
    }
    UniqueFd socket;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        socket.reset(fd);
    }
    if (!socket) {
        // Without room for one more descriptor the kernel leaves it out.
        note({SpawnerNote::Kind::ForkFailed, request.id, EMFILE});
        return;
    }
    fork_keeper(request.id, std::move(socket));
}

void SpawnerLoop::fork_keeper(std::uint32_t id, UniqueFd socket) {
    const pid_t self = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(socket.get(), kKeeperSocket);
        ::fcntl(kKeeperSocket, F_SETFD, FD_CLOEXEC);
        ::close_range(kKeeperSocket + 1, ~0U, 0);
        run_keeper(kKeeperSocket, self, functions_);
        ::_exit(0);
    }
    if (pid < 0) {
        note({SpawnerNote::Kind::ForkFailed, id, errno});
        return;
    }
    keepers_.emplace(pid, id);
    note({SpawnerNote::Kind::Forked, id, pid});
}

void SpawnerLoop::on_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        // Anybody may send SIGTERM; it means something only when the agent is gone.
        if (info.ssi_signo == SIGTERM && ::getppid() != parent_) {
            leave();
        }
    }
    reap();
}

void SpawnerLoop::reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        const auto keeper = keepers_.find(pid);
        if (keeper == keepers_.end()) {
            continue;
        }
        if (WIFSTOPPED(status)) {
            // A stopped keeper would end nothing, and nobody would hear of its member's end.
            ::kill(pid, SIGCONT);
            continue;
        }
        // What it held is ours by now: the kernel hands children on before it tells of an end.
        ended_.push_back({SpawnerNote::Kind::Gone, keeper->second, status});
        keepers_.erase(keeper);
        hunting_ = true;
    }
}

std::vector<pid_t> SpawnerLoop::orphans() const {
    // A child that is no keeper was left by one: while a keeper lives, its orphans go to it.
    std::vector<pid_t> orphans;
    for (const pid_t child : children_of_self()) {
        if (keepers_.count(child) == 0) {
            orphans.push_back(child);
        }
    }
    return orphans;
}

void SpawnerLoop::hunt_orphans() {
    reap();
    const std::vector<pid_t> left = orphans();
    if (!left.empty()) {
        signal_all(left, SIGKILL);
        return;
    }
    hunting_ = false;
    notes_.insert(notes_.end(), ended_.begin(), ended_.end());
    ended_.clear();
}

void SpawnerLoop::leave() {
    if (!left_at_) {
        left_at_ = Clock::now();
        hunting_ = true;
    }
}

void SpawnerLoop::on_deadlines(Clock::time_point now) {
    if (keepers_killed_ || now < *left_at_ + kKeepersLeave) {
        return;
    }
    keepers_killed_ = true;
    for (const auto& [pid, id] : keepers_) {
        ::kill(pid, SIGKILL);
    }
}

void SpawnerLoop::send_notes() {
    while (!notes_.empty() && !left_at_) {
        const ssize_t sent = ::send(
            socket_.get(), &notes_.front(), sizeof(SpawnerNote), MSG_DONTWAIT | MSG_NOSIGNAL
        );
        if (sent < 0 && errno == EAGAIN) {
            return;
        }
        if (sent < 0 && errno != EINTR) {
            leave();
            return;
        }
        if (sent > 0) {
            notes_.pop_front();
        }
    }
}

}  // namespace

void run_spawner(int socket, pid_t parent, const TrialFunctions& functions) {
    UniqueFd signals = become_reaper("muster-spawner", parent);
    if (signals) {
        SpawnerLoop(socket, parent, std::move(signals), functions).run();
    }
}

}  // namespace muster
