// SPDX-License-Identifier: Apache-2.0
//
// member - one running member, as its keeper has it: from start to ECHILD.
//
// All processes of the member descend from the keeper, which is their subreaper; it is over exactly
// when wait says that there is no child any more. How the first process ended is how the member
// ended; what it left behind is asked to go, then killed.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "process/file_follower.hpp"
#include "process/frames.hpp"
#include "process/function.hpp"
#include "process/memory_watch.hpp"
#include "process/output_capture.hpp"
#include "protocol/launch.hpp"

namespace muster {

/// What all trials of a keeper see, ready to be added to.
class BaseEnvironment {
  public:
    BaseEnvironment() = default;
    explicit BaseEnvironment(std::vector<std::string> entries);

    /// A null-terminated array with `variables` on top, valid as long as this and `storage`.
    std::vector<const char*> with(
        const std::vector<EnvironmentVariable>& variables,
        std::vector<std::string>& storage
    ) const;

  private:
    std::vector<std::string> entries_;
    std::unordered_map<std::string, std::size_t> index_;
};

/// What a keeper has for its members.
struct KeeperThings {
    BaseEnvironment environment;
    /// What `LaunchPlan::function` names.
    TrialFunctions functions;
    LastWords last_words;
};

class Member {
  public:
    using Clock = std::chrono::steady_clock;

    /// Starts the member. Everything that it has to tell is appended to `outbox` as frames: first
    /// KeeperStarted, or KeeperEnded at once, and then there is no member.
    /// `things` outlive it.
    static std::optional<Member> start(LaunchPlan plan, KeeperThings& things, std::string& outbox);

    /// Asks all processes to end, and kills them after the grace; or kills them at once.
    void end(bool kill, Clock::time_point now);

    /// To its first process alone.
    void signal(int number);

    void bind(const std::vector<std::uint32_t>& processing_units, std::string& outbox);

    /// Children have ended: reaps them. True when the member is over; then finish() is next.
    bool reap(Clock::time_point now);

    /// What to poll for output; -1 for nothing.
    int poll_fd() const { return output_.poll_fd(); }
    void read_output(std::string& outbox, Clock::time_point now);

    /// When on_time() is due. `may_report`: the outbox has room.
    Clock::time_point due(bool may_report) const;
    void on_time(std::string& outbox, bool may_report, Clock::time_point now);

    /// The last of the output, and KeeperEnded.
    void finish(std::string& outbox, Clock::time_point now);

  private:
    enum class Phase { Running, Terminating, Killing };

    Member(LaunchPlan plan, OutputCapture output, KeeperThings& things, Clock::time_point now);

    ChildStart start_process();

    void kill_all(Clock::time_point now);
    void say(PatternReports& reports, std::string& outbox);
    void say_skipped(const LinePatterns& patterns, std::string& outbox);
    Outcome outcome() const;

    LaunchPlan plan_;
    KeeperThings* things_;
    OutputCapture output_;
    std::vector<FileFollower> followers_;
    MemoryWatch memory_;
    Clock::time_point began_;
    Clock::time_point follow_due_ = Clock::time_point::max();

    pid_t pid_ = -1;
    Phase phase_ = Phase::Running;
    /// Of the grace, or of the next pass of killing.
    Clock::time_point phase_due_ = Clock::time_point::max();
    Clock::duration pass_delay_{};
    std::optional<int> wait_status_;
    /// The signal, when nobody here had asked for its end. Slurm cancels a job by a SIGTERM to
    /// every process in it, so that trials may be gone before muster has read its own.
    int ended_by_others_ = 0;
    /// What signal() sent last.
    int sent_ = 0;
    Usage usage_;
    bool over_memory_ = false;
    bool skipped_said_ = false;
};

}  // namespace muster
