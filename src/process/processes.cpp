// SPDX-License-Identifier: Apache-2.0
#include "process/processes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "process/files.hpp"
#include "process/frames.hpp"
#include "process/keeper_link.hpp"
#include "process/spawner_loop.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

/// Names in the epoll set; keepers count from 0.
constexpr std::uint32_t kSpawnerName = 0xFFFFFFFFU;
constexpr std::uint32_t kEventName = 0xFFFFFFFEU;
/// Keepers asked for and not answered yet: few enough that the socket always has room.
constexpr std::size_t kMostAsked = 64;
/// For the spawner's wait status, once it is gone.
constexpr std::chrono::milliseconds kReapPatience{20};

}  // namespace

struct Processes::State {
    State(Spawner spawner_in, std::vector<std::string> environment_in)
        : spawner(std::move(spawner_in)),
          environment(std::move(environment_in)) {}

    Spawner spawner;
    bool spawner_alive = true;
    bool spawner_reaped = false;
    /// Of waitpid, once it is known.
    std::optional<int> spawner_status;
    std::vector<std::string> environment;
    std::uint64_t environment_version = 1;
    UniqueFd epoll;
    /// Readable while `pending` holds something.
    UniqueFd wakeup;
    std::vector<AgentEvent> pending;
    std::unordered_map<std::uint32_t, KeeperLink> keepers;
    std::vector<std::uint32_t> idle;
    std::map<MemberKey, std::uint32_t> running;
    std::uint32_t next_id = 0;
    /// Keepers to ask the spawner for, with their ends of the sockets.
    std::deque<std::pair<std::uint32_t, UniqueFd>> to_ask;
    std::size_t asked = 0;

    void open();
    void watch(int fd, std::uint32_t name, std::uint32_t events, int operation) const;
    void push(AgentEvent event);
    KeeperLink* find(MemberKey key);
    KeeperLink* take_keeper(MemberKey key);
    KeeperLink* new_keeper(MemberKey key);
    void ask_for_keepers();
    void flush(KeeperLink& link) const;
    void on_spawner();
    void on_note(const SpawnerNote& note);
    void on_spawner_gone();
    void on_keeper(std::uint32_t id, std::uint32_t ready);
    void take(KeeperLink& link, FromKeeper frame);
    void forget_if_gone(std::uint32_t id);
    bool reap_spawner(Clock::time_point deadline);
    void half_close(bool with_spawner) const;
};

void Processes::State::open() {
    epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
    wakeup.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    check(epoll && wakeup, "the agent has room for two descriptors at its start");
    watch(spawner.socket(), kSpawnerName, EPOLLIN, EPOLL_CTL_ADD);
    watch(wakeup.get(), kEventName, EPOLLIN, EPOLL_CTL_ADD);
}

void Processes::State::watch(int fd, std::uint32_t name, std::uint32_t events, int operation)
    const {
    epoll_event event{};
    event.events = events;
    event.data.u32 = name;
    ::epoll_ctl(epoll.get(), operation, fd, &event);
}

void Processes::State::push(AgentEvent event) {
    pending.push_back(std::move(event));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wakeup.get(), &one, sizeof one);
}

KeeperLink* Processes::State::find(MemberKey key) {
    const auto member = running.find(key);
    return member == running.end() ? nullptr : &keepers.at(member->second);
}

KeeperLink* Processes::State::take_keeper(MemberKey key) {
    if (idle.empty()) {
        return new_keeper(key);
    }
    const std::uint32_t id = idle.back();
    idle.pop_back();
    KeeperLink& link = keepers.at(id);
    link.key = key;
    running.emplace(key, id);
    return &link;
}

KeeperLink* Processes::State::new_keeper(MemberKey key) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        const int failed = errno;
        push(MemberEnded{
            key,
            Outcome{
                .cause = EndCause::SpawnFailed,
                .code = failed,
                .detail = fmt::format(
                    "cannot open a socket to a keeper: {}; see 'ulimit -n'", errno_text(failed)
                )},
            Usage{}});
        return nullptr;
    }
    const std::uint32_t id = next_id++;
    KeeperLink& link = keepers[id];
    link.fd.reset(ends[0]);
    link.key = key;
    link.id = id;
    running.emplace(key, id);
    watch(link.fd.get(), id, EPOLLIN, EPOLL_CTL_ADD);
    to_ask.emplace_back(id, UniqueFd(ends[1]));
    ask_for_keepers();
    return &link;
}

void Processes::State::ask_for_keepers() {
    while (spawner_alive && !to_ask.empty() && asked < kMostAsked) {
        KeeperRequest request{to_ask.front().first};
        const int fd = to_ask.front().second.get();
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        iovec part{.iov_base = &request, .iov_len = sizeof request};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
        const ssize_t sent = ::sendmsg(spawner.socket(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            // A socket that is gone is told by its end of file, one without room by the next note.
            return;
        }
        ++asked;
        to_ask.pop_front();
    }
}

void Processes::State::flush(KeeperLink& link) const {
    const bool was_waiting = link.waits_to_write;
    link.send_some();
    if (link.waits_to_write != was_waiting && link.fd) {
        const std::uint32_t events = link.waits_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
        watch(link.fd.get(), link.id, events, EPOLL_CTL_MOD);
    }
}

void Processes::State::on_spawner() {
    while (spawner_alive) {
        SpawnerNote note;
        const ssize_t got = ::recv(spawner.socket(), &note, sizeof note, MSG_DONTWAIT);
        if (got == sizeof note) {
            on_note(note);
        } else if (got < 0 && errno == EAGAIN) {
            break;
        } else if (got >= 0 || errno != EINTR) {
            on_spawner_gone();
        }
    }
    ask_for_keepers();
}

void Processes::State::on_note(const SpawnerNote& note) {
    const auto found = keepers.find(note.id);
    check(found != keepers.end(), "the spawner speaks of a keeper that was asked for");
    KeeperLink& link = found->second;
    switch (note.kind) {
        case SpawnerNote::Kind::Forked:
            --asked;
            link.pid = note.value;
            return;
        case SpawnerNote::Kind::ForkFailed:
            --asked;
            link.fork_error = note.value;
            break;
        case SpawnerNote::Kind::Gone:
            link.wait_status = note.value;
            break;
    }
    link.gone = true;
    forget_if_gone(note.id);
}

void Processes::State::on_spawner_gone() {
    watch(spawner.socket(), kSpawnerName, 0, EPOLL_CTL_DEL);
    spawner.close_socket();
    spawner_alive = false;
    // Its socket closes a moment before it can be reaped.
    reap_spawner(Clock::now() + kReapPatience);
    // Those that were still to be forked see the end of their sockets.
    to_ask.clear();
    std::vector<std::uint32_t> ids;
    for (const auto& [id, link] : keepers) {
        ids.push_back(id);
    }
    for (const std::uint32_t id : ids) {
        // Keepers see the spawner's end themselves, kill what they hold, and close.
        keepers.at(id).gone = true;
        forget_if_gone(id);
    }
}

void Processes::State::on_keeper(std::uint32_t id, std::uint32_t ready) {
    const auto found = keepers.find(id);
    if (found == keepers.end()) {
        return;
    }
    KeeperLink& link = found->second;
    if ((ready & EPOLLOUT) != 0) {
        flush(link);
    }
    if ((ready & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) {
        return;
    }
    link.receive_some();
    while (std::optional<FromKeeper> frame = link.inbox.next_from_keeper()) {
        take(link, *std::move(frame));
    }
    if (link.inbox.broken()) {
        link.end_of_file = true;
    }
    if (link.end_of_file) {
        watch(link.fd.get(), id, 0, EPOLL_CTL_DEL);
        link.fd.reset();
        idle.erase(std::remove(idle.begin(), idle.end(), id), idle.end());
        forget_if_gone(id);
    }
}

void Processes::State::take(KeeperLink& link, FromKeeper frame) {
    // A keeper speaks only of the member that it was given.
    if (!link.key) {
        return;
    }
    const MemberKey key = *link.key;
    std::visit(
        Overloaded{
            [&](KeeperStarted& started) {
                pending.emplace_back(MemberStarted{
                    key, started.pid, std::move(started.binding_problem)});
            },
            [&](KeeperReports& reports) {
                for (std::vector<ValueMember>& report : reports.reports) {
                    pending.emplace_back(ReportArrived{key, std::move(report)});
                }
            },
            [&](KeeperRemark& remark) {
                pending.emplace_back(ReportRefused{key, std::move(remark.text)});
            },
            [&](KeeperEnded& ended) {
                pending.emplace_back(MemberEnded{
                    key, std::move(ended.outcome), ended.usage, std::move(ended.last_lines)});
                running.erase(key);
                link.key.reset();
                idle.push_back(link.id);
            },
        },
        frame
    );
}

void Processes::State::forget_if_gone(std::uint32_t id) {
    const KeeperLink& link = keepers.at(id);
    if (!link.end_of_file || !link.gone) {
        return;
    }
    if (link.key) {
        push(MemberEnded{*link.key, link.why_lost(spawner_alive), Usage{}});
        running.erase(*link.key);
    }
    keepers.erase(id);
}

bool Processes::State::reap_spawner(Clock::time_point deadline) {
    while (!spawner_reaped) {
        // Also when somebody else has reaped it.
        int status = 0;
        const pid_t reaped = ::waitpid(spawner.pid(), &status, WNOHANG);
        spawner_reaped = reaped != 0;
        if (reaped > 0) {
            spawner_status = status;
        }
        if (!spawner_reaped && Clock::now() >= deadline) {
            return false;
        }
        if (!spawner_reaped) {
            ::poll(nullptr, 0, 1);
        }
    }
    return true;
}

void Processes::State::half_close(bool with_spawner) const {
    for (const auto& [id, link] : keepers) {
        if (link.fd) {
            ::shutdown(link.fd.get(), SHUT_WR);
        }
    }
    if (spawner_alive && with_spawner) {
        ::shutdown(spawner.socket(), SHUT_WR);
    }
}

Processes::Processes(Spawner spawner, std::vector<std::string> environment)
    : state_(std::make_unique<State>(std::move(spawner), std::move(environment))) {
    state_->open();
}

Processes::~Processes() {
    if (state_) {
        shutdown(std::chrono::seconds{1});
    }
}

Processes::Processes(Processes&&) noexcept = default;
Processes& Processes::operator=(Processes&&) noexcept = default;

void Processes::set_environment(std::vector<std::string> environment) {
    state_->environment = std::move(environment);
    ++state_->environment_version;
}

void Processes::launch(const LaunchPlan& plan) {
    check(state_->running.count(plan.key) == 0, "a member is launched once");
    if (!state_->spawner_alive) {
        const Outcome lost{
            .cause = EndCause::Lost, .code = 0, .detail = "the process that starts trials is gone"};
        state_->push(MemberEnded{plan.key, lost, Usage{}});
        return;
    }
    KeeperLink* link = state_->take_keeper(plan.key);
    if (link == nullptr) {
        return;
    }
    if (link->environment_version != state_->environment_version) {
        append_frame(UseEnvironment{state_->environment}, link->outbox);
        link->environment_version = state_->environment_version;
    }
    append_frame(plan, link->outbox);
    state_->flush(*link);
}

void Processes::end(MemberKey key, StopKind kind) {
    if (KeeperLink* link = state_->find(key)) {
        append_frame(EndNow{kind == StopKind::Kill}, link->outbox);
        state_->flush(*link);
    }
}

void Processes::bind(MemberKey key, const std::vector<std::uint32_t>& processing_units) {
    if (KeeperLink* link = state_->find(key)) {
        append_frame(BindNow{processing_units}, link->outbox);
        state_->flush(*link);
    }
}

void Processes::signal(MemberKey key, int number) {
    if (KeeperLink* link = state_->find(key)) {
        append_frame(SignalNow{number}, link->outbox);
        state_->flush(*link);
    }
}

int Processes::fd() const {
    return state_->epoll.get();
}

std::vector<AgentEvent> Processes::receive() {
    std::array<epoll_event, 64> ready{};
    const int count =
        ::epoll_wait(state_->epoll.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = ready[static_cast<std::size_t>(i)];
        if (event.data.u32 == kEventName) {
            std::uint64_t ignored = 0;
            [[maybe_unused]] const ssize_t got =
                ::read(state_->wakeup.get(), &ignored, sizeof ignored);
        } else if (event.data.u32 == kSpawnerName) {
            state_->on_spawner();
        } else {
            state_->on_keeper(event.data.u32, event.events);
        }
    }
    return std::exchange(state_->pending, {});
}

std::size_t Processes::running() const {
    return state_->running.size();
}

bool Processes::alive() const {
    return state_->spawner_alive;
}

std::string Processes::death_reason() const {
    if (state_->spawner_alive) {
        return {};
    }
    const std::string who =
        fmt::format("the process that starts its trials ({})", state_->spawner.pid());
    if (state_->spawner_status && WIFSIGNALED(*state_->spawner_status)) {
        const int number = WTERMSIG(*state_->spawner_status);
        const char* name = ::sigabbrev_np(number);
        return fmt::format(
            "{} was ended by signal {} (SIG{}){}",
            who,
            number,
            name != nullptr ? name : "?",
            number == SIGKILL ? ": see whether memory ran out there" : ""
        );
    }
    return who + " is gone";
}

bool Processes::wait_a_little(std::chrono::steady_clock::time_point until) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) {
        return false;
    }
    pollfd poll_fd{.fd = fd(), .events = POLLIN, .revents = 0};
    ::poll(&poll_fd, 1, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1000)));
    return true;
}

std::optional<Spawner> Processes::give_back(Duration deadline) {
    const Clock::time_point until = Clock::now() + deadline;
    state_->half_close(false);
    while (state_->spawner_alive && !state_->keepers.empty() && wait_a_little(until)) {
        receive();
    }
    if (!state_->spawner_alive || !state_->keepers.empty()) {
        return std::nullopt;
    }
    state_->watch(state_->spawner.socket(), kSpawnerName, 0, EPOLL_CTL_DEL);
    state_->spawner_alive = false;
    state_->spawner_reaped = true;
    return std::move(state_->spawner);
}

bool Processes::shutdown(Duration deadline) {
    const Clock::time_point until = Clock::now() + deadline;
    state_->half_close(true);
    // The spawner leaves last: its end of file is the end of everything.
    while ((state_->spawner_alive || !state_->keepers.empty()) && wait_a_little(until)) {
        receive();
    }
    const bool gone = !state_->spawner_alive && state_->keepers.empty();
    if (state_->spawner_alive) {
        // Its keepers see that and end what they hold; nobody waits for them here.
        ::kill(state_->spawner.pid(), SIGKILL);
    }
    return state_->reap_spawner(std::max(until, Clock::now() + std::chrono::milliseconds{100})) &&
           gone;
}

}  // namespace muster
