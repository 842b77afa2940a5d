// SPDX-License-Identifier: Apache-2.0
#include "process/keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "posix/unique_fd.hpp"
#include "process/frames.hpp"
#include "process/member.hpp"
#include "process/reaper.hpp"

namespace muster {
namespace {

using Clock = Member::Clock;
using std::chrono::milliseconds;

/// KeeperStarted waits so long for KeeperEnded: both of a very short member are one message then,
/// and wake the agent once.
constexpr milliseconds kStartedDelay{2};
constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
/// With more than this not yet taken by the agent the member's output waits in its pipe.
constexpr std::size_t kMostUnsent = std::size_t{256} * 1024;

class Keeper {
  public:
    Keeper(int socket, pid_t parent, UniqueFd signals, const TrialFunctions& functions)
        : socket_(socket),
          parent_(parent),
          signals_(std::move(signals)) {
        things_.functions = functions;
    }

    void run();

  private:
    void wait_and_read();
    void receive();
    void take(const ToKeeper& frame);
    void launch(const LaunchPlan& plan);
    void on_signals();
    void reap();
    void leave();
    void flush();
    bool may_report() const { return outbox_.size() - sent_ < kMostUnsent; }
    Clock::time_point due() const;

    UniqueFd socket_;
    pid_t parent_;
    UniqueFd signals_;
    FrameBuffer inbox_;
    /// Frames for the agent; the first `sent_` bytes are gone.
    std::string outbox_;
    std::size_t sent_ = 0;
    /// Nothing is sent before.
    Clock::time_point flush_after_{};
    KeeperThings things_;
    std::optional<Member> member_;
    bool leaving_ = false;
};

void Keeper::run() {
    while (!leaving_ || member_) {
        wait_and_read();
        const Clock::time_point now = Clock::now();
        if (member_ && now >= member_->due(may_report())) {
            member_->on_time(outbox_, may_report(), now);
        }
        if (!member_ || now >= flush_after_) {
            flush();
        }
    }
}

Clock::time_point Keeper::due() const {
    Clock::time_point due = Clock::time_point::max();
    if (member_) {
        due = member_->due(may_report());
        if (sent_ < outbox_.size() && flush_after_ > Clock::time_point{}) {
            due = std::min(due, flush_after_);
        }
    }
    return due;
}

void Keeper::wait_and_read() {
    // Held back is not blocked: the socket may well have room.
    const bool held = member_ && flush_after_ > Clock::time_point{};
    const bool blocked = sent_ < outbox_.size() && !held;
    const auto socket_events = static_cast<short>(blocked ? POLLIN | POLLOUT : POLLIN);
    const int output = member_ && (may_report() || leaving_) ? member_->poll_fd() : -1;
    std::array<pollfd, 3> fds{
        pollfd{.fd = leaving_ ? -1 : socket_.get(), .events = socket_events, .revents = 0},
        pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = output, .events = POLLIN, .revents = 0},
    };
    timespec timeout{};
    const Clock::time_point until = due();
    const bool timed = until != Clock::time_point::max();
    if (timed) {
        const auto left = std::max<Clock::duration>(until - Clock::now(), Clock::duration{0});
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
        timeout.tv_sec = whole.count();
        timeout.tv_nsec = (left - whole).count();
    }
    if (::ppoll(fds.data(), fds.size(), timed ? &timeout : nullptr, nullptr) <= 0) {
        return;
    }
    if ((fds[2].revents & POLLIN) != 0) {
        member_->read_output(outbox_, Clock::now());
    }
    if (fds[1].revents != 0) {
        on_signals();
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        receive();
    }
}

void Keeper::receive() {
    static std::array<char, kPieceBytes> buffer;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        leave();
        return;
    }
    inbox_.append({buffer.data(), static_cast<std::size_t>(got)});
    while (const std::optional<ToKeeper> frame = inbox_.next_to_keeper()) {
        take(*frame);
    }
    if (inbox_.broken()) {
        leave();
    }
}

void Keeper::take(const ToKeeper& frame) {
    std::visit(
        Overloaded{
            [&](const UseEnvironment& use) { things_.environment = BaseEnvironment(use.entries); },
            [&](const LaunchMember& launched) { launch(launched.plan); },
            [&](const EndNow& end) {
                if (member_) {
                    member_->end(end.kill, Clock::now());
                }
            },
            [&](const BindNow& bind) {
                if (member_) {
                    member_->bind(bind.processing_units, outbox_);
                }
            },
            [&](const SignalNow& signal) {
                if (member_) {
                    member_->signal(signal.number);
                }
            },
        },
        frame
    );
}

void Keeper::launch(const LaunchPlan& plan) {
    check(!member_, "a keeper holds one member at a time");
    member_ = Member::start(plan, things_, outbox_);
    flush_after_ = Clock::now() + kStartedDelay;
}

void Keeper::on_signals() {
    signalfd_siginfo info{};
    bool children = false;
    bool parent_died = false;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        children = children || info.ssi_signo == SIGCHLD;
        // Anybody may send SIGTERM; it means something only when the spawner is gone.
        parent_died = parent_died || (info.ssi_signo == SIGTERM && ::getppid() != parent_);
        // One kind at a time is pending as a rule; the next poll tells of another.
        if (info.ssi_signo == SIGCHLD) {
            break;
        }
    }
    if (parent_died) {
        leave();
    }
    if (children) {
        reap();
    }
}

void Keeper::reap() {
    if (!member_) {
        return;
    }
    const Clock::time_point now = Clock::now();
    if (member_->reap(now)) {
        member_->finish(outbox_, now);
        member_.reset();
    }
}

void Keeper::leave() {
    leaving_ = true;
    if (member_) {
        member_->end(true, Clock::now());
    }
}

void Keeper::flush() {
    flush_after_ = Clock::time_point{};
    while (sent_ < outbox_.size() && !leaving_) {
        const ssize_t wrote = ::send(
            socket_.get(),
            outbox_.data() + sent_,
            outbox_.size() - sent_,
            MSG_DONTWAIT | MSG_NOSIGNAL
        );
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EAGAIN) {
            break;
        }
        if (wrote < 0) {
            leave();
            return;
        }
        sent_ += static_cast<std::size_t>(wrote);
    }
    if (leaving_ || sent_ == outbox_.size()) {
        outbox_.clear();
        sent_ = 0;
    } else if (sent_ > kMostUnsent) {
        outbox_.erase(0, sent_);
        sent_ = 0;
    }
}

}  // namespace

void run_keeper(int socket, pid_t parent, const TrialFunctions& functions) {
    UniqueFd signals = become_reaper("muster-keeper", parent);
    if (signals) {
        Keeper(socket, parent, std::move(signals), functions).run();
    }
}

}  // namespace muster
