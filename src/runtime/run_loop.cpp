// SPDX-License-Identifier: Apache-2.0

#include "runtime/run_loop.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/overloaded.hpp"
#include "runtime/experiment_dir.hpp"
#include "runtime/host.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShortestWait = 200us;
/// Between two looks of the observer while the state changes, and while it doesn't.
constexpr Duration kShowInterval = 100ms;
constexpr Duration kIdleInterval = 1s;
constexpr Duration kLiveInterval = 1s;
/// How long the end of a run waits for a journal that can't be written: by itself, and after
/// somebody asked for the end.
constexpr Duration kDiskPatience = 10min;
constexpr Duration kDiskPatienceWhenCancelled = 10s;
/// How long the first trials wait for Slurm to say when its job ends.
constexpr Duration kSlurmPatience = 2s;

constexpr char kStorageWorks[] = "the experiment's storage is written again";

/// "<word> 5m ago".
std::string word_for(RunEnd end) {
    switch (end) {
        case RunEnd::Finished:
            return "finished";
        case RunEnd::TimeBudget:
            return "time budget spent";
        case RunEnd::FailFast:
            return "ended by fail_fast";
        case RunEnd::Cancelled:
            return "cancelled";
        case RunEnd::Interrupted:
            return "interrupted";
        case RunEnd::Infeasible:
            return "refused as infeasible";
        case RunEnd::NothingWorks:
            return "ended since nothing succeeded";
    }
    return "ended";
}

timespec to_timespec(Duration duration) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
    return {whole.count(), (duration - whole).count()};
}

}  // namespace

RunLoop::RunLoop(RunParts parts, TimePoint start, std::string experiment, std::string directory)
    : parts_(parts),
      clock_(start, monotonic_now()),
      stuck_since_(start),
      experiment_(std::move(experiment)),
      directory_(std::move(directory)),
      show_at_(start),
      write_at_(start) {
    if (parts.agent != nullptr) {
        HeadLine& line = *this;
        node_.emplace(*parts.agent, *parts.processes, *parts.reports, line);
    }
    if (parts.team != nullptr) {
        own_node_ = parts.team->local_node().value_or(NodeId{0});
    }
}

Result<LoopEnd> RunLoop::run(const NodeInventory& node) {
    tell_head(Reconcile{});
    // Before anything starts that would not fit.
    parts_.ends.wait_for_first_word(kSlurmPatience);
    look_at_end();
    if (node_) {
        node_->tell(NodeProbed{node, 1}, clock_.now());
    }
    exchange();
    while (!left_) {
        turn();
        if (Status owned = parts_.signs.owned(); !owned.ok()) {
            return owned.error();
        }
        if (has_given_up()) {
            return Error{
                ErrorCode::System, "the end of the run is not on disk: " + storage_problem_};
        }
    }
    if (!storage_problem_.empty() && parts_.signs.problem().empty()) {
        // Nobody leaves before all is on disk.
        parts_.observer.on_note(NoteLevel::Info, kStorageWorks);
    }
    // Shown by the last word of the signs.
    write_live(word_for(left_->end));
    show(true);
    return LoopEnd{*left_, clock_.now(), search_problem_};
}

bool RunLoop::takes_reports() const {
    // Whoever wants an end gets it, even with a full disk.
    return ending_ || !parts_.journal.full();
}

Duration RunLoop::time_to_wait() const {
    const TimePoint now = clock_.now();
    TimePoint next = parts_.head.next_deadline();
    next = node_ ? std::min(next, node_->next_deadline()) : next;
    next = std::min(next, unshown_ ? show_at_ : show_at_ + kIdleInterval);
    next = unwritten_ ? std::min(next, write_at_) : next;
    next = std::min(next, now + parts_.ends.longest_wait(world_now().boot));
    // At least a little, so that a deadline which stays in the past could not take a core.
    const Duration wait = std::clamp<Duration>(next - now, kShortestWait, kIdleInterval);
    return parts_.team != nullptr ? std::min(wait, parts_.team->longest_wait()) : wait;
}

void RunLoop::turn() {
    fds_.assign(
        {{parts_.journal.fd(), POLLIN, 0},
         {parts_.signals.fd(), POLLIN, 0},
         {parts_.ends.fd(), POLLIN, 0}}
    );
    const std::size_t node_begins = fds_.size();
    const std::size_t team_begins = node_begins + (node_ ? NodeSide::kPollFds : 0);
    if (node_) {
        node_->add_poll_fds(fds_, takes_reports());
    }
    if (parts_.team != nullptr) {
        parts_.team->add_poll_fds(fds_);
    }
    const Duration wait = time_to_wait();
    const timespec timeout = to_timespec(wait);
    if (::ppoll(fds_.data(), fds_.size(), &timeout, nullptr) < 0) {
        fds_.assign(fds_.size(), {-1, 0, 0});
    }
    clock_.advance(monotonic_now(), wait);

    if (fds_[0].revents != 0) {
        on_journal();
    }
    if (fds_[1].revents != 0) {
        on_signals();
    }
    look_at_end();
    if (node_) {
        node_->take(&fds_[node_begins], clock_.now());
    }
    if (parts_.team != nullptr) {
        parts_.team->polled(std::span<const pollfd>(fds_).subspan(team_begins));
        on_team();
    }
    on_deadlines();
    exchange();
    if (parts_.team != nullptr) {
        parts_.team->flush();
    }
    show(false);
}

void RunLoop::on_journal() {
    parts_.journal.acknowledge();
    count_durable_facts();
    release_held();
    watch_storage();
}

void RunLoop::release_held() {
    for (Command& command : held_.release(durable_facts_)) {
        carry_out(std::move(command));
    }
}

/// Said once, and once when it is over, whatever is wrong with the storage meanwhile. Until then
/// nothing starts: what it would write there fails, through no fault of its own.
void RunLoop::watch_storage() {
    std::string problem = parts_.journal.problem();
    problem = problem.empty() ? parts_.signs.problem() : problem;
    if (problem.empty() != storage_problem_.empty()) {
        parts_.observer.on_note(
            problem.empty() ? NoteLevel::Info : NoteLevel::Error,
            problem.empty() ? kStorageWorks
                            : problem +
                                  "; running trials go on, none is started, and it is tried "
                                  "again all the time"
        );
        unwritten_ = true;
        held_.hold_starts(!problem.empty());
        release_held();
    }
    storage_problem_ = std::move(problem);
}

void RunLoop::count_durable_facts() {
    const std::uint64_t durable = parts_.journal.durable();
    while (!facts_under_way_.empty() && facts_under_way_.front() <= durable) {
        facts_under_way_.pop_front();
        ++durable_facts_;
        stuck_since_ = clock_.now();
    }
    stuck_since_ = held_.empty() ? clock_.now() : stuck_since_;
}

void RunLoop::on_signals() {
    for (const int number : parts_.signals.receive()) {
        if (number == SIGINT) {
            ++interrupts_;
            request_end(RunEnd::Cancelled, interrupts_ > 1, "interrupted from the keyboard");
        } else {
            on_end_signal(number);
        }
    }
}

void RunLoop::on_end_signal(int number) {
    const EndWish wish = parts_.ends.on_signal(number, world_now());
    if (wish == EndWish::Now || wish == EndWish::AtOnce) {
        request_end(
            RunEnd::Interrupted,
            wish == EndWish::AtOnce,
            fmt::format("SIG{} again", ::sigabbrev_np(number))
        );
    }
}

void RunLoop::look_at_end() {
    const WorldTime world = world_now();
    parts_.ends.look(world);
    if (const std::optional<EndKnown> end = parts_.ends.next(clock_.now(), world)) {
        ends_at_ = end->at;
        tell_head(*end);
    }
    // Soon the process is killed: nothing waits for a disk that does not answer.
    ending_ = ending_ || clock_.now() + kDiskPatienceWhenCancelled >= ends_at_;
}

void RunLoop::request_end(RunEnd end, bool at_once, std::string reason) {
    if (!ending_ && end == RunEnd::Cancelled) {
        parts_.observer.on_note(
            NoteLevel::Info, "stopping: trials are asked to end; ^C again kills them at once"
        );
    }
    ending_ = true;
    tell_head(CancelRequested{end, at_once, std::move(reason)});
}

void RunLoop::on_team() {
    for (const Event& event : parts_.team->receive(takes_reports())) {
        tell_head(event);
    }
}

void RunLoop::on_deadlines() {
    const TimePoint now = clock_.now();
    if (node_) {
        node_->tick(now);
    }
    if (parts_.head.next_deadline() <= now) {
        tell_head(Tick{});
    }
    // Of a file system that does not answer no descriptor tells.
    watch_storage();
}

void RunLoop::exchange() {
    while (!transport_.idle() || !inbox_.empty()) {
        if (std::optional<ToAgent> message = transport_.receive_for_agent()) {
            node_->tell(HeadSaid{std::move(*message)}, clock_.now());
        } else if (std::optional<FromAgent> said = transport_.receive_for_head()) {
            tell_head(AgentSaid{own_node_, std::move(*said)});
        } else {
            const Event event = std::move(inbox_.front());
            inbox_.pop_front();
            tell_head(event);
        }
    }
}

void RunLoop::tell_head(const Event& event) {
    Step step = parts_.head.handle(event, clock_.now());
    for (const Fact& fact : step.facts) {
        facts_under_way_.push_back(parts_.journal.append(fact, clock_.now()));
    }
    // A result is counted with the state before it, and no news of that may come any more.
    count_durable_facts();
    for (Command& command : step.commands) {
        if (std::optional<Command> free = held_.hold_or_pass(std::move(command), durable_facts_)) {
            carry_out(std::move(*free));
        }
    }
    unshown_ = true;
    unwritten_ = true;
}

void RunLoop::carry_out(Command command) {
    std::visit(
        Overloaded{
            [&](Send& message) { send(message); },
            [&](const Ask& ask) { ask_searcher(ask); },
            [&](const Abandon& lost) { abandon(lost); },
            // Random and grid search learn nothing from how trials end.
            [](const Tell&) {},
            [&](const Note& note) { parts_.observer.on_note(note.level, note.text); },
            [&](const Announce& announce) {
                parts_.observer.on_trial_ended(parts_.head, announce.trial, clock_.now());
            },
            [&](const Leave& leave) { left_ = leave; }},
        command.action
    );
}

void RunLoop::send(Send& send) {
    if (node_ && send.node == own_node_) {
        transport_.send(std::move(send.message));
    } else if (parts_.team != nullptr) {
        parts_.team->send(send.node, std::move(send.message));
    }
}

void RunLoop::abandon(const Abandon& lost) {
    held_.forget(lost.node);
    if (parts_.team != nullptr) {
        parts_.team->abandon(lost);
    }
}

void RunLoop::ask_searcher(const Ask& ask) {
    Result<Suggestion> suggestion = parts_.searcher.suggest(ask.count);
    if (suggestion.ok()) {
        inbox_.push_back(Suggested{std::move(suggestion->configs), suggestion->exhausted});
        return;
    }
    search_problem_ = suggestion.error();
    parts_.observer.on_note(NoteLevel::Error, "search: " + suggestion.error().message);
    inbox_.push_back(Suggested{{}, true});
}

void RunLoop::show(bool last) {
    const TimePoint now = clock_.now();
    if (last || (unshown_ && now >= show_at_) || now >= show_at_ + kIdleInterval) {
        parts_.observer.on_progress(parts_.head, now);
        unshown_ = false;
        show_at_ = now + kShowInterval;
    }
    if (!last && unwritten_ && now >= write_at_) {
        write_live("");
        write_at_ = now + kLiveInterval;
    }
}

void RunLoop::write_live(const std::string& ended) {
    unwritten_ = false;
    LiveView view = make_live_view(parts_.head, experiment_, clock_.now());
    view.host = host_name();
    view.pid = ::getpid();
    view.written = ::time(nullptr);
    view.ended = ended;
    parts_.signs.show(to_json(view));
}

bool RunLoop::has_given_up() const {
    // What is held back by the storage does not run.
    const bool runs = parts_.head.active_trials().size() > held_.held_trials();
    if (held_.empty() || (!ending_ && runs)) {
        return false;
    }
    const Duration patience = ending_ ? kDiskPatienceWhenCancelled : kDiskPatience;
    return clock_.now() - stuck_since_ > patience;
}

}  // namespace muster
