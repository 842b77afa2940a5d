// SPDX-License-Identifier: Apache-2.0
//
// run_experiment_test - whole runs with real, small commands.

#include "runtime/run_experiment.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "journal/reader.hpp"
#include "process/environment.hpp"
#include "process/spawner.hpp"
#include "resources/logical_node.hpp"
#include "runtime/live_view.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Keeps what is shown; can send this process a signal once trials run.
class Recorder final : public Observer {
  public:
    void on_progress(const Head& head, TimePoint /*now*/) override {
        if (signal != 0 && head.summary().running >= 2) {
            ::raise(signal);
            signal = 0;
        }
        ++shown;
    }
    void on_note(NoteLevel level, const std::string& text) override {
        if (level != NoteLevel::Info) {
            notes.push_back(text);
        }
    }
    void on_trial_ended(const Head& head, TrialId trial, TimePoint /*now*/) override {
        EXPECT_NE(head.trial(trial), nullptr);
        ended.insert(trial);
    }

    int signal = 0;
    int shown = 0;
    std::vector<std::string> notes;
    std::set<TrialId> ended;
};

class RunExperimentTest : public testing::Test {
  protected:
    RunExperimentTest() {
        std::string name = "/tmp/mu-run-XXXXXX";
        root_ = ::mkdtemp(name.data());
        temporary_ = root_ + "/tmp";
        fs::create_directory(temporary_);
        ::setenv("TMPDIR", temporary_.c_str(), 1);
        spec_.name = "case";
        spec_.storage_path = root_ + "/results";
        spec_.num_samples = 20;
        spec_.trial.command = {"true"};
        spec_.trial.workdir = root_;
        spec_.trial.grace = 5s;
        spec_.space.parameters = {{"x", RealDomain{0, 1, 0, false}, {}}};
    }
    ~RunExperimentTest() override {
        ::unsetenv("TMPDIR");
        fs::remove_all(root_);
    }

    /// Runs the spec on four logical CPUs. Every run must take away what it made for itself.
    RunOutcome run(bool fresh = false, bool retry_failed = false) {
        Result<Spawner> spawner = Spawner::start();
        EXPECT_TRUE(spawner.ok());
        RunRequest request;
        request.spawner = &*spawner;
        request.node = logical_node("here", ResourceSet{.cpu = Amount::whole(4)});
        request.environment = {{"PATH", "/usr/bin:/bin"}};
        request.fresh = fresh;
        request.retry_failed = retry_failed;
        recorder_.ended.clear();
        const Result<RunOutcome> outcome = run_experiment(spec_, request, recorder_);
        EXPECT_TRUE(outcome.ok()) << outcome.error().message;
        EXPECT_TRUE(fs::is_empty(temporary_));
        EXPECT_FALSE(fs::exists(directory() + "/owner"));
        return outcome.ok() ? *outcome : RunOutcome{};
    }

    std::string directory() const { return root_ + "/results/case"; }

    template <class Wanted>
    std::vector<Wanted> facts() const {
        std::vector<Wanted> found;
        const auto reading =
            read_journal(directory() + "/journal", [&](const Fact& fact, TimePoint) {
                if (const auto* wanted = std::get_if<Wanted>(&fact)) {
                    found.push_back(*wanted);
                }
            });
        EXPECT_EQ(reading->damaged + reading->missing, 0U);
        return found;
    }

    std::string root_;
    std::string temporary_;
    ExperimentSpec spec_;
    Recorder recorder_;
};

TEST_F(RunExperimentTest, EveryTrialRunsOnceAndIsWrittenDown) {
    const RunOutcome outcome = run();

    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.end, RunEnd::Finished);
    EXPECT_EQ(outcome.summary.completed, 20U);
    EXPECT_EQ(recorder_.ended.size(), 20U);
    EXPECT_GT(recorder_.shown, 0);
    EXPECT_EQ(facts<TrialCreated>().size(), 20U);
    EXPECT_EQ(facts<AttemptStarted>().size(), 20U);
    EXPECT_EQ(facts<TrialEnded>().size(), 20U);
    EXPECT_EQ(facts<RunEnded>(), (std::vector<RunEnded>{{RunEnd::Finished, ""}}));
    EXPECT_TRUE(fs::exists(directory() + "/experiment.yaml"));
    EXPECT_EQ(read_live_view(directory())->ended, "finished");
}

TEST_F(RunExperimentTest, FailuresAreToldAndTheRestRuns) {
    spec_.trial.command.clear();
    spec_.trial.shell = "case {x} in 0.[0-4]*) exit 3;; esac";

    const RunOutcome outcome = run();

    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_GT(outcome.summary.failed, 0U);
    EXPECT_EQ(outcome.summary.failed + outcome.summary.completed, 20U);
    for (const TrialEnded& ended : facts<TrialEnded>()) {
        EXPECT_EQ(ended.reason, ended.state == TrialState::Failed ? "exit code 3" : "");
    }
}

TEST_F(RunExperimentTest, LinesOfOutputBecomeResults) {
    spec_.objective = ObjectiveSpec{"loss", Mode::Min};
    spec_.trial.command = {"printf", "loss=%s\\n", "{x}", "0.5"};
    spec_.trial.metrics = {{MetricSource::Stdout, "", "loss=(?P<loss>\\S+)"}};

    const RunOutcome outcome = run();

    ASSERT_TRUE(outcome.summary.best.has_value());
    std::vector<ResultReported> results;
    (void)read_results(
        directory() + "/journal",
        *outcome.summary.best,
        [&](const ResultReported& result, TimePoint) { results.push_back(result); }
    );
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[1].result.step, 2);
    EXPECT_EQ(results[1].result.metric("loss"), 0.5);
    for (const TrialEnded& ended : facts<TrialEnded>()) {
        EXPECT_EQ(ended.results, 2U);
    }
}

TEST_F(RunExperimentTest, ACancelledRunGoesOnWhereItWas) {
    spec_.trial.command = {"sleep", "60"};
    recorder_.signal = SIGINT;

    const RunOutcome cancelled = run();

    EXPECT_EQ(cancelled.exit_code, 4);
    EXPECT_EQ(cancelled.end, RunEnd::Cancelled);
    const std::vector<TrialCreated> before = facts<TrialCreated>();

    spec_.trial.command = {"true"};
    const RunOutcome finished = run();

    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_TRUE(finished.continued);
    EXPECT_EQ(finished.summary.completed, 20U);
    EXPECT_EQ(facts<RunStarted>(), (std::vector<RunStarted>{{1}, {2}}));
    const std::vector<TrialCreated> after = facts<TrialCreated>();
    ASSERT_EQ(after.size(), 20U);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    std::set<std::string> configs;
    for (const TrialCreated& created : after) {
        configs.insert(to_json(created.config));
    }
    EXPECT_EQ(configs.size(), 20U);
}

TEST_F(RunExperimentTest, AnInterruptedRunCanGoOnAndSaysSo) {
    spec_.trial.command = {"sleep", "60"};
    recorder_.signal = SIGTERM;

    const RunOutcome outcome = run();

    EXPECT_EQ(outcome.exit_code, 75);
    EXPECT_EQ(outcome.end, RunEnd::Interrupted);
    EXPECT_THAT(outcome.reason, ::testing::HasSubstr("(SIGTERM); trials: 20 wait"));
    EXPECT_EQ(outcome.summary.cancelled, 0U);
}

TEST_F(RunExperimentTest, AFinishedExperimentIsLeftAloneAndFreshBeginsAnother) {
    run();

    const RunOutcome again = run();
    EXPECT_TRUE(again.was_finished);
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_EQ(again.summary.completed, 20U);
    EXPECT_TRUE(recorder_.ended.empty());

    const RunOutcome fresh = run(true);
    EXPECT_EQ(fresh.experiment_dir, directory() + "-2");
    EXPECT_EQ(recorder_.ended.size(), 20U);
}

TEST_F(RunExperimentTest, MoreSamplesGoOnWithAFinishedExperiment) {
    spec_.num_samples = 3;
    run();
    spec_.num_samples = 5;

    const RunOutcome outcome = run();

    EXPECT_FALSE(outcome.was_finished);
    EXPECT_EQ(outcome.summary.completed, 5U);
    EXPECT_EQ(recorder_.ended, (std::set<TrialId>{TrialId{3}, TrialId{4}}));
}

TEST_F(RunExperimentTest, AnotherSpaceIsRefusedByTheNameOfItsKey) {
    spec_.num_samples = 1;
    run();
    spec_.space.parameters = {{"x", RealDomain{0, 2, 0, false}, {}}};
    Result<Spawner> spawner = Spawner::start();
    RunRequest request;
    request.spawner = &*spawner;

    const Result<RunOutcome> outcome = run_experiment(spec_, request, recorder_);

    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::Conflict);
    EXPECT_NE(outcome.error().message.find("space.x"), std::string::npos)
        << outcome.error().message;
}

TEST_F(RunExperimentTest, ARequestThatCannotBeMetEndsAtOnce) {
    spec_.resources[0].group.bundles[0].cpu = Amount::whole(100);

    const auto began = std::chrono::steady_clock::now();
    const RunOutcome outcome = run();

    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
    EXPECT_NE(outcome.reason.find("100"), std::string::npos);
    EXPECT_EQ(facts<AttemptStarted>().size(), 0U);
}

TEST_F(RunExperimentTest, FailedTrialsRunAgainWhenAsked) {
    spec_.num_samples = 4;
    spec_.trial.command = {"false"};
    EXPECT_EQ(run().exit_code, 1);
    spec_.trial.command = {"true"};

    EXPECT_TRUE(run().was_finished);
    const RunOutcome again = run(false, true);

    EXPECT_EQ(again.exit_code, 0);
    EXPECT_EQ(again.summary.completed, 4U);
}

}  // namespace
}  // namespace muster
