// SPDX-License-Identifier: Apache-2.0
#include "process/member.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/checkpoint_files.hpp"
#include "process/child.hpp"
#include "process/files.hpp"
#include "process/process_tree.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFollowInterval{100};
constexpr milliseconds kFirstPassDelay{5};
constexpr milliseconds kLongestPassDelay{200};
constexpr std::size_t kFollowBytes = std::size_t{256} * 1024;
/// At the end of an attempt all of what a file has grown by is read, up to this.
constexpr std::size_t kFollowBytesAtTheEnd = std::size_t{64} * 1024 * 1024;
constexpr std::size_t kReportsPerFrame = 256;

Outcome not_started(int error_number, std::string text) {
    return Outcome{.cause = EndCause::SpawnFailed, .code = error_number, .detail = std::move(text)};
}

/// Directories and files before the start. Nothing when all went well.
std::optional<Outcome> prepare_files(const LaunchPlan& plan) {
    if (!plan.checkpoints.directory.empty() && plan.key.member.value == 0) {
        remove_leftovers(plan.checkpoints);
    }
    if (plan.make_trial_dir) {
        if (const int failed = make_directory(plan.trial_dir); failed != 0) {
            return not_started(
                failed,
                fmt::format(
                    "cannot make the directory '{}': {}", plan.trial_dir, errno_text(failed)
                )
            );
        }
    }
    for (const FileToWrite& file : plan.files) {
        if (const int failed = write_file(file.path, file.content); failed != 0) {
            return not_started(
                failed, fmt::format("cannot write '{}': {}", file.path, errno_text(failed))
            );
        }
    }
    return std::nullopt;
}

std::string in_workdir(const LaunchPlan& plan, const std::string& path) {
    return path.empty() || path.front() == '/' ? path : plan.workdir + "/" + path;
}

/// The expressions of `plan`: those for stdout under "", those for files under their paths.
std::map<std::string, std::vector<std::string>> expressions_by_source(const LaunchPlan& plan) {
    std::map<std::string, std::vector<std::string>> sources;
    for (const MetricPattern& metric : plan.metrics) {
        const bool is_file = metric.from == MetricSource::File;
        sources[is_file ? in_workdir(plan, metric.path) : ""].push_back(metric.pattern);
    }
    return sources;
}

/// By a signal that asks for an end, or that Slurm and srun pass on to every process of a job; also
/// by the word of a shell, or of a program that saved something first. 0 when it ended otherwise.
int asked_to_end_by(int status) {
    constexpr int kShellsOffset = 128;
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - kShellsOffset;
    for (const int asking : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
        if (number == asking) {
            return number;
        }
    }
    return 0;
}

}  // namespace

BaseEnvironment::BaseEnvironment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        index_.emplace(entries_[i].substr(0, entries_[i].find('=')), i);
    }
}

std::vector<const char*> BaseEnvironment::with(
    const std::vector<EnvironmentVariable>& variables,
    std::vector<std::string>& storage
) const {
    std::vector<const char*> result;
    result.reserve(entries_.size() + variables.size() + 1);
    for (const std::string& entry : entries_) {
        result.push_back(entry.c_str());
    }
    storage.reserve(variables.size());
    for (const EnvironmentVariable& variable : variables) {
        storage.push_back(variable.name + "=" + variable.value);
        const auto known = index_.find(variable.name);
        if (known != index_.end()) {
            result[known->second] = storage.back().c_str();
        } else {
            result.push_back(storage.back().c_str());
        }
    }
    result.push_back(nullptr);
    return result;
}

Member::Member(LaunchPlan plan, OutputCapture output, KeeperThings& things, Clock::time_point now)
    : plan_(std::move(plan)),
      things_(&things),
      output_(std::move(output)),
      memory_(plan_.memory_limit_bytes, now),
      began_(now) {}

std::optional<Member> Member::start(LaunchPlan plan, KeeperThings& things, std::string& outbox) {
    const Clock::time_point now = Clock::now();
    const auto fail = [&](Outcome outcome) -> std::optional<Member> {
        append_frame(KeeperEnded{std::move(outcome), Usage{}}, outbox);
        return std::nullopt;
    };
    if (plan.argv.empty() && plan.function.empty()) {
        return fail(not_started(EINVAL, "there is no command to run; set 'trial.command'"));
    }
    if (std::optional<Outcome> failed = prepare_files(plan)) {
        return fail(*std::move(failed));
    }
    std::optional<LinePatterns> on_stdout;
    std::vector<FileFollower> followers;
    for (const auto& [path, expressions] : expressions_by_source(plan)) {
        Result<LinePatterns> patterns = LinePatterns::compile(expressions);
        if (!patterns) {
            return fail(not_started(EINVAL, patterns.error().message));
        }
        if (path.empty()) {
            on_stdout = std::move(patterns).value();
        } else {
            followers.emplace_back(path, std::move(patterns).value());
        }
    }
    Result<OutputCapture> output = OutputCapture::open(plan, std::move(on_stdout));
    if (!output) {
        return fail(not_started(errno, output.error().message));
    }

    Member member(std::move(plan), std::move(output).value(), things, now);
    const ChildStart child = member.start_process();
    if (child.pid < 0) {
        if (!member.plan_.remove_at_end.empty()) {
            ::unlink(member.plan_.remove_at_end.c_str());
        }
        return fail(not_started(child.error_number, child.error));
    }
    member.pid_ = child.pid;
    if (!followers.empty()) {
        member.followers_ = std::move(followers);
        member.follow_due_ = now + kFollowInterval;
    }
    append_frame(KeeperStarted{child.pid, child.binding_problem}, outbox);
    return member;
}

ChildStart Member::start_process() {
    std::vector<std::string> storage;
    const std::vector<const char*> variables = things_->environment.with(plan_.env, storage);
    const ChildRequest request{
        .argv = plan_.argv,
        .environment = variables.data(),
        .workdir = plan_.workdir,
        .stdout_fd = output_.stdout_fd(),
        .stderr_fd = output_.stderr_fd(),
        .is_terminal = plan_.output == OutputMode::Pty,
        .processing_units = plan_.processing_units,
    };
    if (plan_.function.empty()) {
        return start_child(request);
    }
    const TrialFunction* function = find_function(things_->functions, plan_.function);
    if (function == nullptr) {
        return {
            .error_number = ENOENT,
            .error = fmt::format("this program has no function '{}'", plan_.function)};
    }
    return start_function(*function, request, things_->last_words);
}

void Member::end(bool kill, Clock::time_point now) {
    if (kill) {
        if (phase_ != Phase::Killing) {
            pass_delay_ = kFirstPassDelay;
            kill_all(now);
        }
        return;
    }
    if (phase_ != Phase::Running) {
        return;
    }
    phase_ = Phase::Terminating;
    phase_due_ = now + plan_.grace;
    const std::vector<pid_t> children = children_of_self();
    signal_all(children, SIGTERM);
    // A stopped process gets to see it only when it goes on.
    signal_all(children, SIGCONT);
}

void Member::kill_all(Clock::time_point now) {
    phase_ = Phase::Killing;
    signal_all(children_of_self(), SIGKILL);
    phase_due_ = now + pass_delay_;
    pass_delay_ = std::min<Clock::duration>(2 * pass_delay_, kLongestPassDelay);
}

void Member::signal(int number) {
    // Once it was reaped its number may be another's.
    if (phase_ == Phase::Running && !wait_status_ && number > 0 && ::kill(pid_, number) == 0) {
        sent_ = number;
    }
}

void Member::bind(const std::vector<std::uint32_t>& processing_units, std::string& outbox) {
    // Twice: a process that was being forked during the first pass is there in the second.
    std::string problem;
    for (int pass = 0; pass < 2; ++pass) {
        problem = bind_processes(with_descendants(children_of_self()), processing_units);
    }
    if (!problem.empty()) {
        append_frame(KeeperRemark{problem}, outbox);
    }
}

bool Member::reap(Clock::time_point now) {
    int status = 0;
    rusage usage{};
    pid_t pid = 0;
    while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid == pid_) {
            wait_status_ = status;
            ended_by_others_ = phase_ == Phase::Running ? asked_to_end_by(status) : 0;
        }
        const auto time = [](const timeval& value) {
            return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
        };
        usage_.cpu += time(usage.ru_utime) + time(usage.ru_stime);
        usage_.max_rss_bytes =
            std::max(usage_.max_rss_bytes, static_cast<std::int64_t>(usage.ru_maxrss) * 1024);
    }
    if (pid < 0 && errno == ECHILD) {
        return true;
    }
    if (phase_ == Phase::Killing) {
        kill_all(now);
    } else if (wait_status_) {
        end(false, now);
    }
    return false;
}

void Member::read_output(std::string& outbox, Clock::time_point now) {
    PatternReports reports;
    output_.read(reports, now);
    say(reports, outbox);
}

void Member::say(PatternReports& reports, std::string& outbox) {
    for (std::size_t begin = 0; begin < reports.size(); begin += kReportsPerFrame) {
        const std::size_t end = std::min(begin + kReportsPerFrame, reports.size());
        KeeperReports frame;
        frame.reports.assign(
            std::make_move_iterator(reports.begin() + static_cast<std::ptrdiff_t>(begin)),
            std::make_move_iterator(reports.begin() + static_cast<std::ptrdiff_t>(end))
        );
        append_frame(frame, outbox);
    }
    if (std::optional<std::string> remark = output_.take_remark()) {
        append_frame(KeeperRemark{*std::move(remark)}, outbox);
    }
    if (output_.patterns()) {
        say_skipped(*output_.patterns(), outbox);
    }
    for (const FileFollower& follower : followers_) {
        say_skipped(follower.patterns(), outbox);
    }
}

void Member::say_skipped(const LinePatterns& patterns, std::string& outbox) {
    if (skipped_said_ || (patterns.skipped_lines() == 0 && patterns.refused_values() == 0)) {
        return;
    }
    skipped_said_ = true;
    const bool is_long = patterns.skipped_lines() > 0;
    append_frame(
        KeeperRemark{
            is_long ? "a line of more than 64 KiB was not searched for metrics (said once)"
                    : "a metric's value was dropped: it is not UTF-8 (said once)"},
        outbox
    );
}

Member::Clock::time_point Member::due(bool may_report) const {
    const Clock::time_point base = std::min({phase_due_, memory_.due(), output_.flush_due()});
    return may_report ? std::min(base, follow_due_) : base;
}

void Member::on_time(std::string& outbox, bool may_report, Clock::time_point now) {
    if (now >= phase_due_) {
        if (phase_ == Phase::Terminating) {
            pass_delay_ = kFirstPassDelay;
        }
        kill_all(now);
    }
    if (now >= memory_.due() && memory_.look(with_descendants(children_of_self()), now)) {
        over_memory_ = true;
        end(true, now);
    }
    if (now >= output_.flush_due()) {
        output_.flush();
    }
    PatternReports reports;
    if (may_report && now >= follow_due_) {
        follow_due_ = now + kFollowInterval;
        for (FileFollower& follower : followers_) {
            follower.read(kFollowBytes, reports);
        }
    }
    say(reports, outbox);
}

Outcome Member::outcome() const {
    Outcome outcome;
    if (over_memory_) {
        outcome.cause = EndCause::MemoryLimit;
        outcome.detail = fmt::format(
            "asked {}, used {}",
            format_bytes(plan_.memory_limit_bytes),
            format_bytes(memory_.peak_bytes())
        );
        return outcome;
    }
    if (ended_by_others_ != 0) {
        outcome.cause = EndCause::Lost;
        const char* name = ::sigabbrev_np(ended_by_others_);
        outcome.detail =
            ended_by_others_ == sent_
                ? fmt::format("by SIG{}, muster's warning: it does not handle that signal", name)
                : fmt::format("by SIG{}, which did not come from muster", name);
        return outcome;
    }
    const int status = wait_status_.value_or(0);
    const bool signalled = WIFSIGNALED(status);
    outcome.cause = signalled ? EndCause::Signalled : EndCause::Exited;
    outcome.code = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    if (outcome.code != 0) {
        outcome.detail = plan_.function.empty() ? "" : things_->last_words.text();
        outcome.detail = outcome.detail.empty() ? output_.tail() : outcome.detail;
    }
    return outcome;
}

void Member::finish(std::string& outbox, Clock::time_point now) {
    PatternReports reports;
    output_.finish(reports);
    for (FileFollower& follower : followers_) {
        follower.finish(kFollowBytesAtTheEnd, reports);
    }
    say(reports, outbox);
    if (!plan_.remove_at_end.empty()) {
        ::unlink(plan_.remove_at_end.c_str());
    }
    usage_.wall = now - began_;
    usage_.max_rss_bytes = std::max(usage_.max_rss_bytes, memory_.peak_bytes());
    const std::string last_lines = over_memory_ ? output_.tail() : "";
    append_frame(KeeperEnded{outcome(), usage_, last_lines}, outbox);
}

}  // namespace muster
