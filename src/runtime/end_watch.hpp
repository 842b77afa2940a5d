// SPDX-License-Identifier: Apache-2.0
//
// end_watch - when the time of a run ends: by --until, by what Slurm says of its job, and by the
// signals that come shortly before. It asks Slurm again now and then, for a job's limit may change,
// and never waits for it.
//
// Invariant: the earliest of the ends that are known is the one that counts. What Slurm does not
// say while its controller is away stays as it was.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "slurm/job.hpp"
#include "slurm/question.hpp"

namespace muster {

/// Readings of two clocks: `boot` goes on while the machine sleeps, and never jumps; `since_1970`
/// is the time of day, since 1970.
struct WorldTime {
    Duration boot{0};
    Duration since_1970{0};
};

WorldTime world_now();

/// An end that somebody asked for.
struct Until {
    /// Time of day, since 1970.
    Duration at{0};
    /// When each run is to last so long; 0 when it is a time of day.
    Duration whole{0};
    /// "--until 17:30".
    std::string why;
};

struct EndSources {
    std::optional<Until> until;
    std::optional<SlurmJob> job;
    /// How long before its end trials are warned.
    Duration warning{0};
};

/// What to do at a signal.
enum class EndWish {
    /// It was counted already: Slurm sends the same one to a launcher and to its ranks.
    Nothing,
    /// The end is near; next() says when.
    Near,
    /// The run is to stop now, and trials have their grace.
    Now,
    /// … and they have not.
    AtOnce,
};

class EndWatch {
  public:
    using Say = std::function<void(NoteLevel, const std::string&)>;

    /// `say`: something that a person should know about Slurm.
    EndWatch(EndSources sources, Say say);

    /// Readable when look() is worth a call; -1 while nothing is awaited.
    int fd() const { return question_ ? question_->fd() : -1; }
    /// How long until look() is to be called in any case.
    Duration longest_wait(Duration boot) const;

    /// Takes Slurm's answer, when it is there, and asks when it is time to.
    void look(WorldTime now);
    /// As look(), until Slurm has said something, at most for so long.
    void wait_for_first_word(Duration patience);

    /// SIGTERM and SIGHUP: the process is killed soon. SIGUSR1: the time is nearly up, and there is
    /// as much of it as the warning; or as Slurm has said, when that is about the same. The same
    /// again: whoever sends it wants no more waiting.
    EndWish on_signal(int number, WorldTime now);

    /// The end in the experiment's time, when that is something else than was said last. The
    /// experiment's clock stands still at times, and ends do not.
    std::optional<EndKnown> next(TimePoint now, WorldTime world);

  private:
    struct End {
        /// By the clock of WorldTime::boot.
        Duration at{0};
        Duration whole{0};
        std::string why;
    };

    enum class Asked { Job, Config };

    void ask(Asked what, Duration boot);
    void take_answer(const Result<std::string>& answer, WorldTime now);
    void take_job(const JobRecord& record, Duration boot);
    void take_problem(const Error& problem, Duration boot);
    Duration time_between_questions(Duration boot) const;
    std::optional<End> earliest(WorldTime now) const;

    EndSources sources_;
    Say say_;
    std::optional<Question> question_;
    Asked asked_ = Asked::Job;
    /// When Slurm is asked next; nothing when it is never to be asked.
    std::optional<Duration> ask_at_;
    bool has_answered_ = false;
    bool has_complained_ = false;
    std::optional<Duration> kill_wait_;

    std::optional<End> slurm_end_;
    std::optional<End> signal_end_;
    struct Received {
        int number = 0;
        Duration at{0};
    };
    std::vector<Received> received_;
    std::optional<EndKnown> told_;
};

}  // namespace muster
