// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/codec.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

const MemberKey kKey{TrialId{7}, AttemptId{2, 41}, MemberId{3}};

Config config_with_everything() {
    auto schema = std::make_shared<ConfigSchema>();
    schema->keys = {"lr", "layers", "flip", "name", "none", "absent", "list", "map"};
    return {
        schema,
        {Value(1e-5),
         Value(3),
         Value(true),
         Value("a b"),
         Value(),
         std::nullopt,
         Value(Value::List{1, 2.0, "x", Value::List{}}),
         Value(Value::Map{{"k", Value::Map{{"deep", std::nan("")}}}})}};
}

TrialSpec trial_spec() {
    TrialSpec trial;
    trial.command = {"python3", "train.py", "--lr", "{lr}", ""};
    trial.shell = "echo $X";
    trial.function = "train";
    trial.env = {{"A", "1"}, {"EMPTY", ""}};
    trial.files = {{"run.nml", "run.nml.in", "lr = {lr}\n"}};
    trial.workdir = "/work";
    trial.workdir_is_trial_dir = true;
    trial.trial_dir = TrialDir::Never;
    trial.output = OutputMode::Discard;
    trial.time_limit = 30min;
    trial.grace = 1500ms;
    trial.metrics = {{MetricSource::File, "log", "loss=(?P<loss>.*)"}};
    trial.time_attr = "epoch";
    trial.keep_env = {"OMPI_*"};
    trial.drop_env = {"SECRET"};
    return trial;
}

std::vector<ToAgent> every_message_to_agent() {
    Start start;
    start.key = kKey;
    start.config = config_with_everything();
    start.cores = {0, 1, 5};
    start.devices = {2};
    start.cpu = Amount::ten_thousandths(25'000);
    start.gpu = Amount::ten_thousandths(3'333);
    start.memory_limit_bytes = std::int64_t{1} << 40U;
    start.bundles = {{"node1", {0, 1}, {"GPU-1"}}, {"node2", {}, {}}};
    start.last_step = 12.5;
    start.kept_checkpoints = {2, 7};
    start.resume_from = 7;
    start.fetch_from = NodeId{3};
    start.next_checkpoint = 9;
    return {
        Setup{
            4,
            "digits",
            "/results/digits",
            trial_spec(),
            ObjectiveSpec{"loss", Mode::Min},
            CheckpointStorage::Node,
            "/local",
            10},
        Setup{},
        start,
        Start{},
        Stop{kKey, StopKind::Kill},
        SetCores{kKey, {9, 8}},
        Alive{std::uint64_t{1} << 40U},
        CheckpointDurable{kKey, 4},
        DeleteCheckpoint{TrialId{7}, 3},
        Warn{kKey, std::chrono::seconds{90}},
        FromPeer{NodeId{2}, std::string("\0piece", 6)},
        PeerUnreachable{NodeId{5}},
        Dismiss{},
        Dismiss{false}};
}

std::vector<FromAgent> every_message_from_agent() {
    NodeInventory node;
    node.name = "gpu01";
    node.cpu = Amount::whole(64);
    node.cores = {{{0, 64}, 0}, {{1, 65}, 1}};
    node.devices = {{"MIG-1", DeviceKind::Rocm, 1, 80'000, "a device"}};
    node.memory_bytes = 1'000'000;
    node.custom = {{"licence", Amount::ten_thousandths(1)}};
    return {
        Hello{3, node},
        Started{kKey, 4711},
        Reported{
            kKey,
            {std::numeric_limits<double>::infinity(), {{"loss", std::nan("")}, {"n", 3}}},
            17},
        Ended{kKey, {EndCause::Lost, -1, "gone"}, {5s, -1ns, 1}},
        Ended{kKey, {EndCause::Exited, 1, ""}, {}, "Traceback:\n  no module named torch\n"},
        Remark{kKey, std::string("zero \0 inside", 13)},
        Heartbeat{},
        Heartbeat{std::uint64_t{1} << 40U},
        Farewell{"the process that starts trials is gone"},
        CheckpointSaved{kKey, 4, 12.5, std::int64_t{1} << 40U},
        CheckpointGone{kKey, 4, "its directory is gone"},
        ToPeer{NodeId{2}, std::string("\0piece", 6)}};
}

Enrol enrol() {
    Enrol enrol{.host = "gpu01", .boot_id = "9d3e", .pid = 4711, .problem = "no cores"};
    enrol.inventory.name = "gpu01";
    enrol.inventory.cores = {{{0, 64}, 0}};
    return enrol;
}

Enlisted enlisted() {
    Enlisted word;
    word.role = RankRole::Dismissed;
    word.inventory.name = "gpu01";
    word.environment = {"A=1", "EMPTY=", "TEXT=a b\nc"};
    word.token_path = "/results/digits/.token";
    word.token = "5f";
    word.heartbeat = 5s;
    word.lease = 45s;
    word.rejoin = 10min;
    word.orderly = false;
    return word;
}

/// The word of the roll call survives, and no part of its frame is taken for a whole one.
template <class Word, class Decode>
void expect_whole(const Word& word, const Decode& decode) {
    const std::string frame = encode(word);

    const Result<Word> decoded = decode(frame);

    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(*decoded, word);
    for (std::size_t size = 0; size < frame.size(); ++size) {
        EXPECT_FALSE(decode(std::string_view(frame).substr(0, size)).ok()) << size;
    }
    EXPECT_FALSE(decode(frame + "x").ok());
}

TEST(WireTest, TheWordsOfTheRollCallSurviveAndAreNeverCut) {
    expect_whole(enrol(), decode_enrol);
    expect_whole(Enrol{}, decode_enrol);
    expect_whole(enlisted(), decode_enlisted);
    expect_whole(Enlisted{}, decode_enlisted);
    expect_whole(AgentReady{"it sees no token"}, decode_agent_ready);
    expect_whole(AgentReady{}, decode_agent_ready);
}

TEST(WireTest, AWordOfTheRollCallIsTakenForNoOther) {
    EXPECT_FALSE(decode_agent_ready(encode(enrol())).ok());
    EXPECT_FALSE(decode_enrol(encode(enlisted())).ok());
    EXPECT_FALSE(decode_enlisted(encode(ToAgent{Dismiss{}})).ok());
    EXPECT_FALSE(decode_from_agent(encode(AgentReady{})).ok());
}

TEST(WireTest, EveryMessageToAnAgentSurvives) {
    for (const ToAgent& message : every_message_to_agent()) {
        const Result<std::vector<ToAgent>> decoded = decode_to_agent(encode(message));

        ASSERT_TRUE(decoded.ok()) << decoded.error().message;
        EXPECT_EQ(*decoded, std::vector<ToAgent>{message});
    }
}

TEST(WireTest, EveryMessageFromAnAgentSurvives) {
    for (const FromAgent& message : every_message_from_agent()) {
        const Result<std::vector<FromAgent>> decoded = decode_from_agent(encode(message));

        ASSERT_TRUE(decoded.ok()) << decoded.error().message;
        EXPECT_EQ(*decoded, std::vector<FromAgent>{message});
    }
}

TEST(WireTest, SeveralMessagesKeepTheirOrderInOneFrame) {
    const std::vector<ToAgent> messages = every_message_to_agent();

    const Result<std::vector<ToAgent>> decoded = decode_to_agent(encode(messages));

    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, messages);
    EXPECT_EQ(*decode_to_agent(encode(std::span<const ToAgent>{})), std::vector<ToAgent>{});
}

TEST(WireTest, AFrameForTheOtherDirectionIsRefused) {
    EXPECT_EQ(decode_from_agent(encode(ToAgent{Dismiss{}})).error().code, ErrorCode::Corrupt);
    EXPECT_EQ(decode_to_agent(encode(FromAgent{Heartbeat{}})).error().code, ErrorCode::Corrupt);
}

TEST(WireTest, AFrameCutAtAnyByteIsRefused) {
    const std::string to_agent = encode(every_message_to_agent());
    const std::string from_agent = encode(every_message_from_agent());

    for (std::size_t size = 0; size < to_agent.size(); ++size) {
        EXPECT_FALSE(decode_to_agent(std::string_view(to_agent).substr(0, size)).ok()) << size;
    }
    for (std::size_t size = 0; size < from_agent.size(); ++size) {
        EXPECT_FALSE(decode_from_agent(std::string_view(from_agent).substr(0, size)).ok()) << size;
    }
    EXPECT_FALSE(decode_to_agent(to_agent + "x").ok());
}

TEST(WireTest, AnyFlippedBitEndsInAMessageOrAnError) {
    std::string bytes = encode(every_message_to_agent());
    std::size_t decoded = 0;

    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        const auto mask = static_cast<char>(1U << (bit % 8));
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
        decoded += decode_to_agent(bytes).ok() ? 1U : 0U;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
    }

    EXPECT_GT(decoded, 0U);
    EXPECT_LT(decoded, bytes.size() * 8);
}

TEST(WireTest, HugeCountsAllocateNothing) {
    const std::string frame = encode(every_message_to_agent().front());

    for (std::size_t at = 4; at + 8 <= frame.size(); ++at) {
        std::string hostile = frame;
        for (std::size_t byte = 0; byte < 7; ++byte) {
            hostile[at + byte] = '\x7F';
        }
        // A count that was believed would end in bad_alloc or in the kernel's killer.
        (void)decode_to_agent(hostile);
    }
    SUCCEED();
}

TEST(WireTest, ValuesThatNestTooDeeplyAreRefused) {
    Value value;
    for (int depth = 0; depth < 5000; ++depth) {
        Value::List list;
        list.push_back(std::move(value));
        value = Value(std::move(list));
    }
    const FromAgent message = Reported{kKey, {0, {{"deep", value}}}, 0};

    EXPECT_EQ(decode_from_agent(encode(message)).error().code, ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster
