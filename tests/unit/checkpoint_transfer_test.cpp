// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint on its way from one directory to another, by the messages that nodes exchange.

#include "checkpoint/checkpoint_transfer.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "protocol/launch.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr FetchKey kKey{7, TrialId{1}, 4};

std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

class CheckpointTransferTest : public ::testing::Test {
  protected:
    CheckpointTransferTest() {
        fs::create_directories(original + "/empty");
        fs::create_directories(original + "/layers");
        std::ofstream(original + "/layers/first") << std::string(3 * kFetchBytes / 2, 'w');
        std::ofstream(original + "/layers/second") << "more";
        std::ofstream(original + "/nothing") << "";
        std::ofstream(original + "/run.sh") << "#!/bin/sh\n";
        fs::permissions(original + "/run.sh", fs::perms::owner_all);
        fs::create_symlink("layers/second", original + "/best");
    }
    ~CheckpointTransferTest() override { fs::remove_all(top); }

    /// As through the wire.
    PeerMessage ask(const PeerMessage& question) const {
        const auto asked = decode_peer_message(encode_peer_message(question));
        EXPECT_TRUE(asked.has_value());
        auto answer = decode_peer_message(encode_peer_message(answer_peer(from, *asked)));
        EXPECT_TRUE(answer.has_value());
        return *answer;
    }

    static std::string make_top() {
        char path[] = "/tmp/muster-transfer-test-XXXXXX";
        return ::mkdtemp(path);
    }

    std::string top = make_top();
    std::string from = top + "/from";
    std::string to = top + "/to/1";
    std::string original = from + "/checkpoint_000004";
};

TEST_F(CheckpointTransferTest, TheCopyIsTheOriginalAndHasItsNameOnlyAtTheEnd) {
    const std::string place = *begin_fetch(to, 4);
    const Entries entries = std::get<Entries>(ask(AskEntries{kKey, 0}));
    EXPECT_TRUE(entries.last);
    ASSERT_TRUE(write_entries(place, entries.entries).ok());
    for (const CheckpointEntry& entry : entries.entries) {
        std::int64_t offset = 0;
        while (offset < entry.bytes) {
            const auto bytes = std::min<std::int64_t>(kFetchBytes, entry.bytes - offset);
            const AskPieces asked{kKey, {{entry.path, offset, bytes}}};
            const Status written =
                write_pieces(place, asked.pieces, std::get<Pieces>(ask(asked)).bytes);
            ASSERT_TRUE(written.ok()) << written.error().message;
            offset += bytes;
        }
    }
    EXPECT_FALSE(fs::exists(to + "/checkpoint_000004"));

    ASSERT_TRUE(finish_fetch(to, 4, place, entries.entries).ok());

    const std::string copy = to + "/checkpoint_000004";
    EXPECT_EQ(content(copy + "/layers/first"), content(original + "/layers/first"));
    EXPECT_EQ(content(copy + "/best"), "more");
    EXPECT_TRUE(fs::is_symlink(copy + "/best"));
    EXPECT_TRUE(fs::is_directory(copy + "/empty"));
    EXPECT_EQ(fs::file_size(copy + "/nothing"), 0U);
    EXPECT_EQ(fs::status(copy + "/run.sh").permissions(), fs::perms::owner_all);
    EXPECT_FALSE(fs::exists(place));
}

TEST_F(CheckpointTransferTest, LongListsComeInPages) {
    for (int file = 0; file < 6000; ++file) {
        std::ofstream(original + "/" + std::string(60, 'x') + std::to_string(file)) << "";
    }
    std::size_t count = 0;
    bool last = false;
    int pages = 0;

    while (!last) {
        const Entries page = std::get<Entries>(ask(AskEntries{kKey, count}));
        count += page.entries.size();
        last = page.last;
        ++pages;
    }

    EXPECT_EQ(count, 6007U);
    EXPECT_GT(pages, 2);
}

TEST_F(CheckpointTransferTest, WhatIsNotThereIsSaid) {
    const FetchKey other{7, TrialId{1}, 5};

    EXPECT_THAT(std::get<NoCheckpoint>(ask(AskEntries{other, 0})).why, HasSubstr("No such file"));
    EXPECT_THAT(
        std::get<NoCheckpoint>(ask(AskPieces{kKey, {{"nothing", 0, 1}}})).why,
        HasSubstr("became shorter")
    );
    EXPECT_THAT(
        std::get<NoCheckpoint>(ask(AskPieces{kKey, {{"best", 0, 1}}})).why, HasSubstr("open")
    );
}

TEST_F(CheckpointTransferTest, AnInterruptedFetchBeginsAnew) {
    const std::string place = *begin_fetch(to, 4);
    std::ofstream(place + "/half") << "x";

    EXPECT_TRUE(fs::is_empty(*begin_fetch(to, 4)));
}

TEST_F(CheckpointTransferTest, AnAnswerOfAnotherSizeIsNotTaken) {
    const std::string place = *begin_fetch(to, 4);
    ASSERT_TRUE(write_entries(place, {{.path = "a", .bytes = 3}}).ok());

    EXPECT_FALSE(write_pieces(place, {{"a", 0, 3}}, "ab").ok());
    EXPECT_FALSE(write_pieces(place, {{"a", 0, 3}}, "abcd").ok());
}

TEST(PeerWordsTest, BytesThatMeanNothingAreNoMessage) {
    const std::string good = encode_peer_message(AskPieces{kKey, {{"a/b", 3, 9}}});

    EXPECT_EQ(decode_peer_message(good), PeerMessage(AskPieces{kKey, {{"a/b", 3, 9}}}));
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_FALSE(decode_peer_message(good.substr(0, size)).has_value()) << size;
    }
    EXPECT_FALSE(decode_peer_message(good + "x").has_value());
    EXPECT_FALSE(decode_peer_message(std::string(100, '\xff')).has_value());
}

TEST(PeerWordsTest, PathsThatLeadOutAreNoMessage) {
    for (const char* path : {"", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/"}) {
        const PeerMessage question = AskPieces{kKey, {{path, 0, 1}}};
        EXPECT_FALSE(decode_peer_message(encode_peer_message(question)).has_value()) << path;
        const PeerMessage answer = Entries{kKey, {{.path = path}}, true};
        EXPECT_FALSE(decode_peer_message(encode_peer_message(answer)).has_value()) << path;
    }
    const PeerMessage much = AskPieces{kKey, {{"a", 0, kFetchBytes}, {"b", 0, 1}}};
    EXPECT_FALSE(decode_peer_message(encode_peer_message(much)).has_value());
}

}  // namespace
}  // namespace muster
