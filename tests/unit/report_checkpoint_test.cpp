// SPDX-License-Identifier: Apache-2.0
//
// Saving checkpoints from the trial's side - muster/trial.hpp and `muster checkpoint` - against the
// real server, which runs in a thread here and keeps what it is asked to.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <sys/stat.h>

#include "muster/trial.hpp"

#include "report/report_client.hpp"
#include "report_fixture.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
}

std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A directory with a file in a directory of it, and a link.
void make_model(const fs::path& path) {
    fs::create_directories(path / "layers");
    std::ofstream(path / "layers" / "first") << "weights";
    fs::create_symlink("layers/first", path / "best");
}

std::vector<std::string> names_in(const fs::path& path) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
        names.push_back(entry.path().filename().string());
    }
    return names;
}

class ReportCheckpointTest : public ReportServerTest {
  protected:
    ReportCheckpointTest() {
        set("MUSTER_SOCKET", server.socket_path());
        set("MUSTER_TRIAL_ID", "00042");
        set("MUSTER_ATTEMPT", "1.7");
        set("MUSTER_CHECKPOINT_DIR", kept);
    }
    ~ReportCheckpointTest() override {
        for (const char* name :
             {"MUSTER_SOCKET", "MUSTER_TRIAL_ID", "MUSTER_ATTEMPT", "MUSTER_CHECKPOINT_DIR"}) {
            ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
        }
    }

    void keep(const ReportServer::CheckpointAsked& asked) {
        const std::string name = "checkpoint_00000" + std::to_string(++number);
        fs::rename(kept + "/" + asked.line.path, kept + "/" + name);
        steps.push_back(asked.line.step.value_or(-1));
        server.answer_checkpoint(asked.ticket, name);
    }

    /// Runs the server's loop in a thread until `client` has returned.
    void with_server(const std::function<void()>& client) {
        std::atomic<bool> over{false};
        std::thread loop([&] {
            while (!over) {
                pollfd entry{server.fd(), POLLIN, 0};
                ::poll(&entry, 1, 10);
                server.receive();
                for (const ReportServer::CheckpointAsked& asked : server.take_checkpoints()) {
                    refusal.empty() ? keep(asked) : server.refuse_checkpoint(asked.ticket, refusal);
                }
            }
        });
        client();
        over = true;
        loop.join();
    }

    std::string kept = dir.path() + "/some/checkpoints";
    std::string model = dir.path() + "/model";
    std::string refusal;
    int number = 0;
    std::vector<double> steps;
};

TEST_F(ReportCheckpointTest, ADirectoryIsMovedAndSafe) {
    make_model(model);

    with_server([&] {
        const trial::Checkpoint saved = trial::checkpoint(model, 4);
        EXPECT_TRUE(saved.safe) << saved.problem;
        EXPECT_EQ(saved.path, kept + "/checkpoint_000001");
    });

    EXPECT_FALSE(fs::exists(model));
    EXPECT_EQ(content(kept + "/checkpoint_000001/best"), "weights");
    EXPECT_EQ(steps, std::vector<double>{4});
    EXPECT_EQ(fs::status(kept).permissions(), fs::perms::owner_all);
}

TEST_F(ReportCheckpointTest, OneFromAnotherFileSystemIsCopiedAndGoes) {
    const std::string other = "/dev/shm/muster-checkpoint-test-" + std::to_string(::getpid());
    make_model(other);

    with_server([&] { EXPECT_TRUE(trial::checkpoint(other).safe); });

    EXPECT_FALSE(fs::exists(other));
    EXPECT_TRUE(fs::is_symlink(kept + "/checkpoint_000001/best"));
    EXPECT_EQ(content(kept + "/checkpoint_000001/best"), "weights");
}

TEST_F(ReportCheckpointTest, WhatIsNotKeptGoesBackToWhereItWas) {
    make_model(model);
    refusal = "the disk is full";

    with_server([&] {
        const trial::Checkpoint saved = trial::checkpoint(model);
        EXPECT_FALSE(saved);
        EXPECT_EQ(saved.path, model);
        EXPECT_THAT(saved.problem, HasSubstr("the disk is full"));
    });

    EXPECT_EQ(content(model + "/layers/first"), "weights");
    EXPECT_THAT(names_in(kept), IsEmpty());
}

TEST_F(ReportCheckpointTest, WhatCanNotBeSavedIsSaidAndStays) {
    std::ofstream(dir.path() + "/file") << "x";

    with_server([&] {
        EXPECT_THAT(trial::checkpoint(dir.path() + "/file").problem, HasSubstr("Not a directory"));
        EXPECT_THAT(trial::checkpoint(dir.path() + "/no").problem, HasSubstr("No such file"));
        // It would be moved into itself.
        EXPECT_THAT(trial::checkpoint(dir.path()).problem, HasSubstr("cannot move"));
    });

    EXPECT_TRUE(fs::exists(dir.path() + "/file"));
}

TEST_F(ReportCheckpointTest, ThreadsSaveSideBySide) {
    with_server([&] {
        std::vector<std::thread> threads;
        threads.reserve(4);
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&, thread] {
                const std::string mine = model + std::to_string(thread);
                make_model(mine);
                EXPECT_TRUE(trial::checkpoint(mine));
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    });

    EXPECT_EQ(names_in(kept).size(), 4U);
}

TEST_F(ReportCheckpointTest, AWarningAsksForACheckpointUntilOneIsSaved) {
    with_server([&] {
        EXPECT_FALSE(trial::should_checkpoint());
        EXPECT_FALSE(trial::time_left().has_value());
    });
    server.tell_warning(kMember, std::chrono::seconds{120});
    make_model(model);

    with_server([&] {
        trial::report_and_wait(1, {{"x", 1}});
        EXPECT_TRUE(trial::should_checkpoint());
        EXPECT_GT(trial::time_left()->count(), 0);
        EXPECT_LE(trial::time_left()->count(), 120);
        EXPECT_TRUE(trial::checkpoint(model));
        EXPECT_FALSE(trial::should_checkpoint());
    });
}

TEST_F(ReportCheckpointTest, TheCommandSavesAndPrintsWhere) {
    make_model(model);

    with_server([&] {
        EXPECT_EQ(
            checkpoint_command(model, "2.5"), (ClientOutcome{0, kept + "/checkpoint_000001\n", ""})
        );
        EXPECT_EQ(checkpoint_command(model, "").exit_code, 2);
        EXPECT_THAT(checkpoint_command(kept, "four").err, HasSubstr("\"four\" is no number"));
    });

    EXPECT_EQ(steps, std::vector<double>{2.5});
}

TEST_F(ReportCheckpointTest, TheCommandSaysWhyNothingIsSaved) {
    make_model(model);
    refusal = "the disk is full";

    with_server([&] {
        EXPECT_EQ(
            checkpoint_command(model, ""),
            (ClientOutcome{1, "", "muster: not saved: refused: the disk is full\n"})
        );
    });
    set("MUSTER_SOCKET", dir.path() + "/nothing");
    EXPECT_THAT(checkpoint_command(model, "").err, HasSubstr("cannot reach muster at"));
}

TEST(ReportCheckpointAloneTest, NotUnderMusterTheDirectoryStays) {
    const RunDir dir;
    const std::string model = dir.path() + "/model";
    make_model(model);

    EXPECT_FALSE(trial::checkpoint(model));
    EXPECT_EQ(trial::checkpoint(model, 1).path, model);
    EXPECT_EQ(trial::checkpoint(model).problem, "");
    EXPECT_FALSE(trial::should_checkpoint());
    EXPECT_EQ(trial::resume_dir(), "");
    EXPECT_EQ(
        checkpoint_command(model, ""),
        (ClientOutcome{
            0, model + "\n", "muster: not under muster: " + model + " stays where it is\n"})
    );
    EXPECT_EQ(content(model + "/best"), "weights");
}

}  // namespace
}  // namespace muster
