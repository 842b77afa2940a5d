// SPDX-License-Identifier: Apache-2.0

#include "runtime/end_watch.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint at(Duration time) {
    return TimePoint{time};
}

/// The machine has run for an hour, and it is a minute past 1970's beginning.
constexpr WorldTime world(Duration passed) {
    return {1h + passed, 60s + passed};
}

EndWatch watch(EndSources sources) {
    return {std::move(sources), [](NoteLevel, const std::string&) {}};
}

TEST(EndWatchTest, WithoutAnySourceThereIsNoEnd) {
    EndWatch ends = watch({});

    EXPECT_EQ(ends.fd(), -1);
    EXPECT_FALSE(ends.next(at(5s), world(0s)));
}

TEST(EndWatchTest, UntilIsToldOnceInTheExperimentsTime) {
    EndWatch ends = watch({.until = Until{60s + 10min, 10min, "--until 10m"}});

    EXPECT_EQ(ends.next(at(5s), world(0s)), (EndKnown{at(10min + 5s), 10min, "--until 10m"}));
    EXPECT_FALSE(ends.next(at(65s), world(60s)));
}

TEST(EndWatchTest, AClockThatStoodStillIsCorrected) {
    EndWatch ends = watch({.until = Until{60s + 10min, 0s, "--until 10m"}});
    ends.next(at(0s), world(0s));

    // The loop was stopped for five minutes, which the experiment's clock leaves out.
    EXPECT_EQ(ends.next(at(1s), world(5min + 1s))->at, at(5min));
}

TEST(EndWatchTest, TheEnvironmentsEndTimeIsKnownAtOnce) {
    SlurmJob job{.id = "7", .restarts = 0, .start_time = 0, .end_time = 3660};
    EndWatch ends = watch({.until = std::nullopt, .job = job});
    ends.look(world(0s));

    const auto end = ends.next(at(0s), world(0s));

    ASSERT_TRUE(end);
    EXPECT_EQ(end->at, at(1h));
    EXPECT_EQ(end->whole, 61min);
}

TEST(EndWatchTest, TermMeansThatTheProcessIsKilledSoon) {
    EndWatch ends = watch({.until = Until{60s + 10h, 10h, "--until 10h"}});
    ends.next(at(0s), world(0s));

    EXPECT_EQ(ends.on_signal(SIGTERM, world(1h)), EndWish::Near);

    EXPECT_EQ(ends.next(at(1h), world(1h)), (EndKnown{at(1h + 10s), 10h, "SIGTERM"}));
}

TEST(EndWatchTest, Usr1LeavesTimeForTheWarning) {
    EndWatch ends = watch({.until = std::nullopt, .job = std::nullopt, .warning = 2min});

    EXPECT_EQ(ends.on_signal(SIGUSR1, world(0s)), EndWish::Near);

    EXPECT_EQ(ends.next(at(0s), world(0s)), (EndKnown{at(2min), 0s, "SIGUSR1"}));
}

TEST(EndWatchTest, Usr1DoesNotPutOffAnEndThatIsNearer) {
    EndWatch ends = watch({.until = Until{60s + 30s, 0s, "--until 30s"}, .warning = 2min});
    ends.next(at(0s), world(0s));

    ends.on_signal(SIGUSR1, world(0s));

    EXPECT_FALSE(ends.next(at(0s), world(0s)));
}

TEST(EndWatchTest, TheSameSignalAgainAsksForMore) {
    EndWatch ends = watch({});

    EXPECT_EQ(ends.on_signal(SIGUSR1, world(0s)), EndWish::Near);
    EXPECT_EQ(ends.on_signal(SIGUSR1, world(1s)), EndWish::Nothing);
    EXPECT_EQ(ends.on_signal(SIGTERM, world(5s)), EndWish::Near);
    EXPECT_EQ(ends.on_signal(SIGUSR1, world(6s)), EndWish::Now);
    EXPECT_EQ(ends.on_signal(SIGTERM, world(8s)), EndWish::AtOnce);
}

/// A `scontrol` of the test's own, first on PATH.
class EndWatchOfSlurmTest : public testing::Test {
  protected:
    EndWatchOfSlurmTest() {
        std::string name = std::filesystem::temp_directory_path() / "muster-end-watch-XXXXXX";
        directory_ = ::mkdtemp(name.data());
        path_ = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        ::setenv("PATH", (directory_ + ":" + path_).c_str(), 1);
    }
    ~EndWatchOfSlurmTest() override {
        ::setenv("PATH", path_.c_str(), 1);
        std::filesystem::remove_all(directory_);
    }

    /// What `scontrol` does from now on, as a shell script.
    void scontrol(const std::string& script) const {
        const std::string file = directory_ + "/scontrol";
        std::ofstream(file + ".new") << "#!/bin/sh\n" << script << "\n";
        std::filesystem::permissions(file + ".new", std::filesystem::perms::owner_all);
        std::filesystem::rename(file + ".new", file);
    }
    void job_is(const std::string& record) const {
        scontrol(
            "case \"$*\" in *config*) printf '\\nKillWait = 20 sec\\n';; *) echo \"JobId=7 " +
            record + "\";; esac"
        );
    }

    EndWatch watch_job(std::uint32_t restarts = 0) {
        return {
            {.until = std::nullopt,
             .job = SlurmJob{"7", restarts, std::nullopt, std::nullopt},
             .warning = 0s},
            [this](NoteLevel, const std::string& text) { said_.push_back(text); }};
    }
    /// Asks, and takes the answers to all that is asked then.
    static void ask(EndWatch& ends, WorldTime now) {
        ends.look(now);
        while (ends.fd() >= 0) {
            pollfd one{ends.fd(), POLLIN, 0};
            ASSERT_EQ(::poll(&one, 1, 20'000), 1);
            ends.look(now);
        }
    }

    std::string directory_;
    std::string path_;
    std::vector<std::string> said_;
};

TEST_F(EndWatchOfSlurmTest, TheEndIsTheLimitLessWhatTheJobHasRun) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:10:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));

    EXPECT_EQ(
        ends.next(at(0s), world(0s)),
        (EndKnown{at(50min), 1h, "the Slurm job's time limit of 1h00m"})
    );
}

TEST_F(EndWatchOfSlurmTest, ALimitThatChangesIsSeen) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:00:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));
    ends.next(at(0s), world(0s));

    job_is("JobState=RUNNING Restarts=0 RunTime=00:01:00 TimeLimit=00:31:00");
    EXPECT_EQ(ends.longest_wait(world(0s).boot), 30s);
    ask(ends, world(60s));
    EXPECT_EQ(ends.next(at(60s), world(60s))->at, at(31min));

    job_is("JobState=RUNNING Restarts=0 RunTime=00:02:00 TimeLimit=UNLIMITED");
    ask(ends, world(120s));
    EXPECT_EQ(ends.next(at(120s), world(120s)), EndKnown{});
}

TEST_F(EndWatchOfSlurmTest, TheNearerTheEndTheOftenerItIsAsked) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:00:00 TimeLimit=00:02:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));
    EXPECT_EQ(ends.longest_wait(world(0s).boot), 15s);
}

TEST_F(EndWatchOfSlurmTest, AControllerThatIsAwayChangesNothing) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:00:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));
    ends.next(at(0s), world(0s));

    scontrol("echo 'Unable to contact slurm controller' >&2; exit 1");
    ask(ends, world(60s));

    EXPECT_FALSE(ends.next(at(60s), world(60s)));
    EXPECT_EQ(ends.longest_wait(world(60s).boot), 15s);
    EXPECT_TRUE(said_.empty());
}

TEST_F(EndWatchOfSlurmTest, AnAnswerThatDoesNotComeIsGivenUp) {
    scontrol("sleep 1000");
    EndWatch ends = watch_job();
    ends.look(world(0s));
    ASSERT_GE(ends.fd(), 0);

    ends.look(world(31s));

    EXPECT_EQ(ends.fd(), -1);
    ASSERT_EQ(said_.size(), 1U);
    EXPECT_NE(said_[0].find("does not answer"), std::string::npos) << said_[0];
}

TEST_F(EndWatchOfSlurmTest, AJobThatBeganAnewIsOverHere) {
    job_is("JobState=RUNNING Restarts=1 RunTime=00:00:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job(0);
    ask(ends, world(0s));

    EXPECT_EQ(ends.next(at(7s), world(0s)), (EndKnown{at(7s), 0s, "the Slurm job is over"}));
}

TEST_F(EndWatchOfSlurmTest, AJobThatWasCancelledIsOverThoughNobodyCouldSaySo) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:00:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));
    ends.next(at(0s), world(0s));

    job_is("JobState=CANCELLED Restarts=0 RunTime=00:01:00 TimeLimit=01:00:00");
    ask(ends, world(60s));

    EXPECT_EQ(ends.next(at(60s), world(60s)), (EndKnown{at(60s), 1h, "the Slurm job is over"}));
}

TEST_F(EndWatchOfSlurmTest, SlurmsOwnWarningTakesNothingFromTheTime) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:57:00 TimeLimit=01:00:00");
    EndWatch ends(
        {.until = std::nullopt,
         .job = SlurmJob{"7", 0, std::nullopt, std::nullopt},
         .warning = 2min},
        [](NoteLevel, const std::string&) {}
    );
    ask(ends, world(0s));
    ends.next(at(0s), world(0s));

    // sbatch --signal=B:USR1@120, which Slurm sends up to a minute early.
    EXPECT_EQ(ends.on_signal(SIGUSR1, world(10s)), EndWish::Near);

    EXPECT_FALSE(ends.next(at(10s), world(10s)));
}

TEST_F(EndWatchOfSlurmTest, TermLeavesWhatTheSiteWaitsBeforeItKills) {
    job_is("JobState=RUNNING Restarts=0 RunTime=00:00:00 TimeLimit=01:00:00");
    EndWatch ends = watch_job();
    ask(ends, world(0s));

    ends.on_signal(SIGTERM, world(0s));

    EXPECT_EQ(ends.next(at(0s), world(0s)), (EndKnown{at(20s), 1h, "SIGTERM"}));
}

}  // namespace
}  // namespace muster
