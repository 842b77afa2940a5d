// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the directories of checkpoints on a node.

#include "checkpoint/checkpoint_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class CheckpointFilesTest : public ::testing::Test {
  protected:
    CheckpointFilesTest() {
        char path[] = "/tmp/muster-checkpoint-test-XXXXXX";
        top = ::mkdtemp(path);
        directory = top + "/00001/checkpoints";
        fs::create_directories(directory);
    }
    ~CheckpointFilesTest() override { fs::remove_all(top); }

    void make(const std::string& name, std::size_t bytes = 5) const {
        fs::create_directories(directory + "/" + name + "/layers");
        std::ofstream(directory + "/" + name + "/layers/first") << std::string(bytes, 'w');
    }

    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
            found.push_back(entry.path().filename().string());
        }
        return found;
    }

    std::string top;
    std::string directory;
};

TEST_F(CheckpointFilesTest, AFreshDirectoryGetsItsNumberAndIsMeasured) {
    make(".new-1", 1000);
    fs::create_symlink("layers/first", directory + "/.new-1/best");

    const Result<KeptDirectory> kept = keep_checkpoint(directory, ".new-1", 3);

    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(kept->number, 3U);
    EXPECT_EQ(kept->bytes, 1000);
    EXPECT_THAT(names(), UnorderedElementsAre("checkpoint_000003"));
}

TEST_F(CheckpointFilesTest, ANumberThatIsTakenIsPassedOver) {
    make(".new-1");
    make("checkpoint_000003");
    // rename() would replace an empty one.
    fs::create_directory(directory + "/checkpoint_000004");

    const Result<KeptDirectory> kept = keep_checkpoint(directory, ".new-1", 3);

    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(kept->number, 5U);
}

TEST_F(CheckpointFilesTest, WhatIsNotThereOrNoDirectoryIsNotKept) {
    std::ofstream(directory + "/.new-2") << "x";

    EXPECT_THAT(keep_checkpoint(directory, ".new-1", 1).error().message, HasSubstr("No such file"));
    EXPECT_THAT(
        keep_checkpoint(directory, ".new-2", 1).error().message, HasSubstr("Not a directory")
    );
}

TEST_F(CheckpointFilesTest, ACheckpointIsFoundOrNotOrUnknown) {
    make("checkpoint_000003");
    std::ofstream(directory + "/checkpoint_000004") << "x";

    EXPECT_EQ(find_checkpoint(directory, 3), Presence::There);
    EXPECT_EQ(find_checkpoint(directory, 2), Presence::NotThere);
    EXPECT_EQ(find_checkpoint(directory, 4), Presence::NotThere);
    EXPECT_EQ(find_checkpoint(top + "/no/such", 1), Presence::NotThere);
    if (::geteuid() != 0) {
        fs::permissions(directory, fs::perms::none);
        EXPECT_EQ(find_checkpoint(directory, 3), Presence::Unknown);
        fs::permissions(directory, fs::perms::owner_all);
    }
}

TEST_F(CheckpointFilesTest, WhatIsRetiredHasLostItsNameBeforeItIsRemoved) {
    make("checkpoint_000003");

    const std::string gone = retire_checkpoint(directory, 3);

    EXPECT_TRUE(fs::exists(gone + "/layers/first"));
    EXPECT_EQ(find_checkpoint(directory, 3), Presence::NotThere);
    EXPECT_EQ(retire_checkpoint(directory, 3), "");
    remove_whole(gone);
    EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CheckpointFilesTest, LeftoversGoAndKeptOnesStay) {
    make("checkpoint_000002");
    make("checkpoint_000003");
    make("checkpoint_000004");
    make(".new-1.7--99-0");
    make(".gone-checkpoint_000001-7-0");
    make("half-written by the trial");
    std::ofstream(directory + "/file") << "x";
    fs::create_symlink(top, directory + "/link");

    remove_leftovers({.directory = directory, .kept = {2, 4}});

    EXPECT_THAT(names(), UnorderedElementsAre("checkpoint_000002", "checkpoint_000004"));
    EXPECT_TRUE(fs::exists(top));
    remove_leftovers({.directory = top + "/no/such"});
}

TEST_F(CheckpointFilesTest, ADirectoryThatOthersCanChangeIsNotUsed) {
    const std::string mine = fmt::format("{}/muster-{}", top, ::geteuid());
    directory = mine + "/digits-0a/n1/00001";
    EXPECT_TRUE(check_own_directory(directory).ok());
    fs::create_directories(directory);
    make("checkpoint_000001");
    EXPECT_TRUE(check_own_directory(directory).ok());

    ASSERT_EQ(::chmod(mine.c_str(), 0777), 0);

    EXPECT_THAT(check_own_directory(directory).error().message, HasSubstr("checkpoints.path"));
    EXPECT_FALSE(keep_checkpoint(directory, "checkpoint_000001", 2).ok());
    EXPECT_EQ(find_checkpoint(directory, 1), Presence::Unknown);
    remove_leftovers({.directory = directory});
    EXPECT_EQ(retire_checkpoint(directory, 1), "");
    EXPECT_THAT(names(), UnorderedElementsAre("checkpoint_000001"));
}

TEST_F(CheckpointFilesTest, ALinkInPlaceOfADirectoryIsNotFollowed) {
    const std::string mine = fmt::format("{}/muster-{}/digits-0a/n1", top, ::geteuid());
    fs::create_directories(mine);
    fs::permissions(mine, fs::perms::owner_all);
    fs::create_directory_symlink(directory, mine + "/00001");
    make("precious");

    remove_leftovers({.directory = mine + "/00001"});

    EXPECT_THAT(names(), UnorderedElementsAre("precious"));
}

}  // namespace
}  // namespace muster
