// SPDX-License-Identifier: Apache-2.0

#include "runtime/end_watch.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "slurm/requeue.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// Slurm is asked the more often the nearer the end is.
constexpr Duration kShortestInterval = 5s;
constexpr Duration kLongestInterval = 30s;
constexpr int kQuestionsUntilEnd = 8;
/// How long an answer may take, and how long a controller that is away is left alone.
constexpr Duration kAnswerPatience = 30s;
constexpr Duration kRetryInterval = 15s;
/// As Slurm has it unless a site sets it.
constexpr Duration kUsualKillWait = 30s;
/// Outside Slurm: what the most impatient of common supervisors give a process to end.
constexpr Duration kShortestKillWait = 10s;
/// Signals so close together are one.
constexpr Duration kSameSignal = 2s;
/// Slurm's own signal may come so much before its time (sbatch --signal).
constexpr Duration kSlurmsHaste = 90s;
/// A change of the end that is worth telling.
constexpr Duration kWorthTelling = 2s;

Duration reading(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Duration distance(TimePoint left, TimePoint right) {
    return left < right ? right - left : left - right;
}

}  // namespace

WorldTime world_now() {
    return {reading(CLOCK_BOOTTIME), reading(CLOCK_REALTIME)};
}

EndWatch::EndWatch(EndSources sources, Say say)
    : sources_(std::move(sources)),
      say_(std::move(say)) {
    if (sources_.job) {
        ask_at_ = Duration{0};
    }
}

Duration EndWatch::longest_wait(Duration boot) const {
    if (question_) {
        return question_->until() - boot;
    }
    return ask_at_ ? *ask_at_ - boot : kLongestInterval;
}

void EndWatch::look(WorldTime now) {
    if (sources_.job && sources_.job->end_time && !slurm_end_ && !has_answered_) {
        const Duration end = std::chrono::seconds(*sources_.job->end_time);
        const auto start = sources_.job->start_time;
        slurm_end_ =
            End{now.boot + (end - now.since_1970),
                start ? end - std::chrono::seconds(*start) : Duration{0},
                "the Slurm job's time limit"};
    }
    if (question_) {
        if (const std::optional<Result<std::string>> answer = question_->take(now.boot)) {
            question_.reset();
            take_answer(*answer, now);
        }
    } else if (ask_at_ && *ask_at_ <= now.boot) {
        ask(Asked::Job, now.boot);
    }
}

void EndWatch::wait_for_first_word(Duration patience) {
    WorldTime now = world_now();
    const Duration end = now.boot + patience;
    while (sources_.job && !has_answered_ && !has_complained_ && now.boot < end) {
        look(now);
        pollfd one{fd(), POLLIN, 0};
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(end - now.boot);
        if (one.fd >= 0) {
            ::poll(&one, 1, static_cast<int>(wait.count()));
        }
        now = world_now();
    }
}

void EndWatch::ask(Asked what, Duration boot) {
    const std::vector<std::string> config{"scontrol", "show", "config"};
    asked_ = what;
    Result<Question> question = Question::ask(
        what == Asked::Job ? show_job_command(*sources_.job) : config, boot + kAnswerPatience
    );
    if (question.ok()) {
        question_ = std::move(*question);
    } else {
        take_problem(question.error(), boot);
    }
}

void EndWatch::take_answer(const Result<std::string>& answer, WorldTime now) {
    if (!answer.ok()) {
        take_problem(answer.error(), now.boot);
        return;
    }
    if (asked_ == Asked::Config) {
        kill_wait_ = parse_kill_wait(*answer).value_or(kUsualKillWait);
        ask_at_ = now.boot + time_between_questions(now.boot);
        return;
    }
    const Result<JobRecord> record = parse_job_record(*answer);
    if (!record.ok()) {
        take_problem(record.error(), now.boot);
        return;
    }
    take_job(*record, now.boot);
    if (!kill_wait_) {
        ask(Asked::Config, now.boot);
    } else {
        ask_at_ = now.boot + time_between_questions(now.boot);
    }
}

void EndWatch::take_job(const JobRecord& record, Duration boot) {
    has_answered_ = true;
    has_complained_ = false;
    if (is_over(record, *sources_.job)) {
        // Slurm can't reach this node, and has begun the job anew elsewhere, perhaps.
        slurm_end_ =
            End{boot, slurm_end_ ? slurm_end_->whole : Duration{0}, "the Slurm job is over"};
        return;
    }
    slurm_end_.reset();
    if (record.time_limit) {
        slurm_end_ = End{
            boot + record.time_left,
            *record.time_limit,
            fmt::format("the Slurm job's time limit of {}", format_duration(*record.time_limit))};
    }
}

void EndWatch::take_problem(const Error& problem, Duration boot) {
    const bool for_good = problem.code == ErrorCode::NotFound;
    ask_at_ = for_good ? std::nullopt : std::optional(boot + kRetryInterval);
    // A controller that is away for a while is nothing to be told of when the end is known.
    if (!has_complained_ && !has_answered_ && !slurm_end_) {
        say_(
            NoteLevel::Warning,
            fmt::format(
                "when this Slurm job ends is not known: {}{}",
                problem.message,
                for_good ? "; --until says it" : "; it is asked again"
            )
        );
    }
    has_complained_ = true;
}

Duration EndWatch::time_between_questions(Duration boot) const {
    if (!slurm_end_) {
        return kLongestInterval;
    }
    return std::clamp<Duration>(
        (slurm_end_->at - boot) / kQuestionsUntilEnd, kShortestInterval, kLongestInterval
    );
}

EndWish EndWatch::on_signal(int number, WorldTime now) {
    Received* before = nullptr;
    for (Received& received : received_) {
        before = received.number == number ? &received : before;
    }
    const bool is_same = before != nullptr && now.boot - before->at < kSameSignal;
    if (is_same) {
        return EndWish::Nothing;
    }
    if (before != nullptr) {
        before->at = now.boot;
        return number == SIGUSR1 ? EndWish::Now : EndWish::AtOnce;
    }
    received_.push_back({number, now.boot});
    const Duration killed_after =
        sources_.job ? kill_wait_.value_or(kUsualKillWait) : kShortestKillWait;
    const Duration left = number == SIGUSR1 ? sources_.warning : killed_after;
    const Duration at = now.boot + left;
    const bool is_slurms = number == SIGUSR1 && slurm_end_ && slurm_end_->at < at + kSlurmsHaste;
    if (!is_slurms && (!signal_end_ || at < signal_end_->at)) {
        signal_end_ = End{at, Duration{0}, fmt::format("SIG{}", ::sigabbrev_np(number))};
    }
    return EndWish::Near;
}

std::optional<EndWatch::End> EndWatch::earliest(WorldTime now) const {
    std::optional<End> first;
    const auto take = [&first](const End& end) {
        const Duration whole = first ? first->whole : Duration{0};
        if (!first || end.at < first->at) {
            first = end;
        }
        // How long allocations last is known however this one ends.
        first->whole = first->whole > Duration{0} ? first->whole : whole;
    };
    if (slurm_end_) {
        take(*slurm_end_);
    }
    if (sources_.until) {
        const Until& until = *sources_.until;
        take({now.boot + (until.at - now.since_1970), until.whole, until.why});
    }
    if (signal_end_) {
        take(*signal_end_);
    }
    return first;
}

std::optional<EndKnown> EndWatch::next(TimePoint now, WorldTime world) {
    const std::optional<End> end = earliest(world);
    EndKnown known;
    if (end) {
        known = EndKnown{now + (end->at - world.boot), end->whole, end->why};
    }
    const EndKnown last = told_.value_or(EndKnown{});
    const bool is_news = (known.at == kNever) != (last.at == kNever) || known.whole != last.whole ||
                         distance(known.at, last.at) > kWorthTelling;
    if (!is_news) {
        return std::nullopt;
    }
    told_ = known;
    return known;
}

}  // namespace muster
