// SPDX-License-Identifier: Apache-2.0
//
// journal_life - journals of whole experiments made of literals, and a head's state in words to
// compare them by.

#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "head/head.hpp"
#include "head/trial.hpp"
#include "journal/reader.hpp"
#include "journal/record.hpp"
#include "journal/segments.hpp"
#include "runtime/restore_head.hpp"
#include "search/searcher.hpp"

namespace muster {

inline ExperimentSpec life_spec(std::int64_t trials) {
    ExperimentSpec spec;
    spec.name = "life";
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    spec.num_samples = trials;
    spec.seed = 7;
    spec.space.parameters = {{"lr", RealDomain{.lower = 1e-4, .upper = 1e-1, .log = true}, {}}};
    return spec;
}

inline BasicSearcher life_searcher(const ExperimentSpec& spec) {
    Result<BasicSearcher> searcher =
        BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    EXPECT_TRUE(searcher.ok()) << searcher.error().message;
    return std::move(searcher).value();
}

struct TimedFact {
    Fact fact;
    TimePoint at;
};

/// The facts of an experiment in which everything happens that can: several runs, retries, trials
/// that were cancelled and run again, failures that were forgiven.
class Life {
  public:
    Life(std::uint32_t trials, std::uint32_t seed)
        : searcher_(life_searcher(life_spec(trials))),
          trials_(trials),
          random_(seed) {}

    std::vector<TimedFact> live(std::uint32_t runs, std::uint32_t steps) {
        for (std::uint32_t run = 1; run <= runs; ++run) {
            begin_run(run);
            for (std::uint32_t step = 0; step < steps; ++step) {
                do_something();
            }
            if (run < runs && one_in(2)) {
                keep(RunEnded{RunEnd::Cancelled, "interrupted from the keyboard"});
            }
        }
        return std::move(facts_);
    }

  private:
    struct Trial {
        std::optional<AttemptId> running;
        std::optional<TrialState> ended;
        std::uint32_t failures = 0;
        std::uint64_t results = 0;
        std::optional<TrialResult> last;
        std::optional<TrialResult> best;
    };

    bool one_in(std::uint32_t n) { return random_() % n == 0; }

    void keep(Fact fact) {
        now_ = now_ + Duration{1'000};
        facts_.push_back({std::move(fact), now_});
    }

    void begin_run(std::uint32_t run) {
        epoch_ = run;
        next_attempt_ = 0;
        keep(RunStarted{run});
        for (std::uint32_t node = 0; node < 3; ++node) {
            keep(NodeJoined{NodeId{node}, fmt::format("n{}", (node + run) % 4), 1});
        }
        for (Trial& trial : lives_) {
            trial.running.reset();
        }
    }

    void do_something() {
        if (lives_.size() < trials_ && (lives_.empty() || one_in(4))) {
            const TrialId id{static_cast<std::uint32_t>(lives_.size())};
            keep(TrialCreated{id, searcher_.config_at(id.value).value()});
            lives_.emplace_back();
            return;
        }
        const auto id = static_cast<std::uint32_t>(random_() % lives_.size());
        Trial& trial = lives_[id];
        if (!trial.running) {
            if (!trial.ended || *trial.ended == TrialState::Cancelled ||
                (*trial.ended == TrialState::Failed && one_in(2))) {
                start(TrialId{id}, trial);
            } else if (*trial.ended == TrialState::Failed) {
                keep(TrialReopened{TrialId{id}, trial.failures});
                trial.failures = 0;
                trial.ended.reset();
            }
        } else if (one_in(3)) {
            end(TrialId{id}, trial);
        } else {
            report(TrialId{id}, trial);
        }
    }

    void start(TrialId id, Trial& trial) {
        trial.running = AttemptId{epoch_, next_attempt_++};
        trial.ended.reset();
        BundlePlacement placed;
        placed.node = NodeId{static_cast<std::uint32_t>(random_() % 3)};
        placed.bundle.cpu = Amount::whole(1);
        placed.cores = {0};
        keep(AttemptStarted{id, *trial.running, {{placed}}});
    }

    void report(TrialId id, Trial& trial) {
        // Values of all their own, so that there is one best.
        const double accuracy = double(random_()) / 4294967296.0;
        const TrialResult result{double(++trial.results), {{"accuracy", accuracy}}};
        keep(ResultReported{id, *trial.running, result, false, 0});
        trial.last = result;
        if (!trial.best || accuracy > *trial.best->metric("accuracy")) {
            trial.best = result;
        }
    }

    void end(TrialId id, Trial& trial) {
        const bool failed = one_in(3);
        keep(AttemptEnded{
            id,
            *trial.running,
            {EndCause::Exited, failed ? 1 : 0, ""},
            {Duration{1'000 + int(random_() % 100)}, Duration{5}, 1 << 20},
            failed});
        trial.running.reset();
        trial.failures += failed ? 1 : 0;
        if (failed && one_in(2)) {
            // It is to be tried again.
            return;
        }
        const TrialState state = failed      ? TrialState::Failed
                                 : one_in(5) ? TrialState::Cancelled
                                             : TrialState::Completed;
        keep(TrialEnded{
            id, state, failed ? "exit code 1" : "", trial.results, trial.last, trial.best});
        trial.ended = state;
    }

    BasicSearcher searcher_;
    std::uint32_t trials_;
    std::mt19937 random_;
    std::uint32_t epoch_ = 0;
    std::uint32_t next_attempt_ = 0;
    TimePoint now_;
    std::vector<Trial> lives_;
    std::vector<TimedFact> facts_;
};

inline std::string read_whole(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_whole(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Writes the facts as a journal whose segments hold so many records each.
inline void write_journal(
    const std::string& directory,
    const std::vector<TimedFact>& facts,
    std::size_t per_segment
) {
    std::filesystem::create_directories(directory);
    for (const std::string_view stem : {journal::kStateStem, journal::kResultsStem}) {
        std::uint64_t number = 0;
        std::uint64_t segment = 0;
        std::string text;
        const auto end_segment = [&] {
            if (!text.empty()) {
                write_whole(directory + "/" + journal::segment_name(stem, ++segment), text);
                text.clear();
            }
        };
        for (const TimedFact& fact : facts) {
            const bool is_result = std::holds_alternative<ResultReported>(fact.fact);
            if (is_result != (stem == journal::kResultsStem)) {
                continue;
            }
            if (number % per_segment == 0) {
                end_segment();
                journal::append_record(journal::Header{1, "0.1.0", "life"}, "", text);
            }
            journal::append_record(fact.fact, {++number, fact.at}, "", text);
        }
        end_segment();
    }
}

/// What a head knows of a trial.
inline std::string describe(const Trial& trial) {
    std::string text = fmt::format("{} {}", to_string(trial.state), to_json(trial.config));
    if (trial.progress != nullptr) {
        const TrialProgress& progress = *trial.progress;
        const auto result = [](const std::optional<TrialResult>& of) {
            return of ? fmt::format("{}: {}", of->step, to_json(Value(of->metrics))) : "none";
        };
        text += fmt::format(
            " results {} last {} best {} failures {} attempts {} ran {}",
            progress.results,
            result(progress.last),
            result(progress.best),
            progress.failures,
            progress.attempts,
            progress.ran.count()
        );
        if (is_final(trial.state)) {
            text += fmt::format(" at {} '{}'", progress.ended.since_start.count(), progress.reason);
        }
    }
    return text;
}

/// A head that was restored, trial by trial, and the rest.
struct Revived {
    std::vector<std::string> trials;
    std::vector<std::string> nodes;
    std::string rest;
    std::vector<std::string> problems;

    friend bool operator==(const Revived&, const Revived&) = default;
};

/// Restores the journal into `head`; fails the test when it can't be.
inline Revived revive(const std::string& directory, Head& head, const BasicSearcher* searcher) {
    Revived revived;
    Result<Restored> restored = restore_head(directory, head, searcher);
    EXPECT_TRUE(restored.ok()) << restored.error().message;
    if (!restored.ok()) {
        return revived;
    }
    for (std::uint32_t id = 0; id < head.trial_count(); ++id) {
        revived.trials.push_back(describe(*head.trial(TrialId{id})));
        revived.nodes.push_back(restored->nodes.name_of(TrialId{id}));
    }
    const HeadSummary summary = head.summary();
    revived.rest = fmt::format(
        "epoch {} next {} {} last {} ended {} done {} failures {} best {}",
        head.epoch(),
        restored->next_state,
        restored->next_result,
        restored->last.since_start.count(),
        restored->ended ? int(*restored->ended) : -1,
        summary.done(),
        summary.failures,
        summary.best ? to_string(*summary.best) : "none"
    );
    revived.problems = std::move(restored->problems);
    return revived;
}

class JournalLifeTest : public ::testing::Test {
  protected:
    JournalLifeTest() {
        std::string name = (std::filesystem::temp_directory_path() / "muster-life-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        directory_ = root_ + "/journal";
    }
    ~JournalLifeTest() override { std::filesystem::remove_all(root_); }

    Revived revive_anew(std::int64_t trials) {
        const ExperimentSpec spec = life_spec(trials);
        const BasicSearcher searcher = life_searcher(spec);
        Head head(spec, RunOptions{}, searcher.total_trials());
        return revive(directory_, head, &searcher);
    }

    std::string root_;
    std::string directory_;
};

}  // namespace muster
