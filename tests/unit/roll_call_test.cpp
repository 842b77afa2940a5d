// SPDX-License-Identifier: Apache-2.0

#include "runtime/roll_call.hpp"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resources/logical_node.hpp"
#include "transport/in_process_network.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Enrol enrol_of(const std::string& host) {
    Enrol enrol;
    enrol.host = host;
    enrol.boot_id = host;
    enrol.inventory = logical_node(host, parse_node_resources("cpu=2").value());
    return enrol;
}

/// Rank 0 on "n0" in this thread; every other rank is what its test makes it.
class RollCallTest : public ::testing::Test {
  protected:
    RollCallTest() {
        char pattern[] = "/tmp/muster-roll-call-XXXXXX";
        directory_ = ::mkdtemp(pattern);
    }
    ~RollCallTest() override { std::filesystem::remove_all(directory_); }

    RollCall call(Transport& transport) {
        return {transport, [this](const std::string& text) { said_.push_back(text); }, -1};
    }

    EnlistOptions options() const {
        return {.environment = {"A=1"}, .shared_directory = directory_, .timeout = 20s};
    }

    std::string directory_;
    std::vector<std::string> said_;
};

/// Lets the other side hear that its last words came in.
void hang_up(Transport& transport) {
    transport.receive(true);
    transport.receive(true);
}

/// Goes on serving the transport until `over`, as the head's loop would.
void go_on(Transport& transport, const std::atomic<int>& left) {
    EXPECT_TRUE(wait_for(transport, 20s, -1, [&](const std::vector<ReceivedMessage>&) {
        return left == 0;
    }));
}

/// An agent that is ready once it has seen the token.
void serve(Transport& transport, const std::string& host, Enlisted& got) {
    const Result<Enlisted> enlisted = answer_roll_call(transport, enrol_of(host), 20s);
    ASSERT_TRUE(enlisted.ok()) << enlisted.error().message;
    got = *enlisted;
    if (got.role == RankRole::Agent) {
        const Status found = find_token(got);
        tell_ready(transport, {found.ok() ? "" : found.error().message});
        wait_until_sent(transport, {0}, 20s);
    }
    hang_up(transport);
}

TEST_F(RollCallTest, EveryRankGetsItsRoleAndSeesTheToken) {
    InProcessNetwork network(3);
    Enlisted first;
    Enlisted second;
    std::atomic<int> left = 2;
    std::thread one([&] {
        serve(network.endpoint(1), "n1", first);
        --left;
    });
    std::thread two([&] {
        serve(network.endpoint(2), "n1", second);
        --left;
    });
    {
        RollCall roll_call = call(network.endpoint(0));

        const auto ranks = roll_call.gather(enrol_of("n0"), 20s);
        ASSERT_TRUE(ranks.ok());
        const Roles roles = assign_roles(*ranks, {}).value();
        const auto ready = roll_call.enlist(roles, options());

        ASSERT_TRUE(ready.ok()) << ready.error().message;
        EXPECT_EQ(*ready, roles.agents);
        go_on(network.endpoint(0), left);
        one.join();
        two.join();
        network.break_endpoint(2);
    }
    EXPECT_EQ(first.role, RankRole::Agent);
    EXPECT_THAT(first.environment, ElementsAre("A=1"));
    EXPECT_EQ(first.inventory.name, "n1");
    EXPECT_EQ(second.role, RankRole::Idle);
    EXPECT_THAT(said_, IsEmpty());
    EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "the token is left behind";
}

TEST_F(RollCallTest, ARankThatDoesNotAnswerIsNamedAndLeftOut) {
    InProcessNetwork network(2);
    RollCall roll_call = call(network.endpoint(0));

    const auto ranks = roll_call.gather(enrol_of("n0"), 50ms);

    ASSERT_TRUE(ranks.ok());
    EXPECT_EQ(ranks->size(), 1U);
    EXPECT_TRUE(roll_call.lost_any());
    EXPECT_THAT(said_, ElementsAre(HasSubstr("rank 1 did not answer within 50ms")));
}

TEST_F(RollCallTest, AnotherBuildIsRefused) {
    InProcessNetwork network(2);
    network.endpoint(1).send(0, Lane::Control, "0.0.9 (abcdef)\n" + encode(enrol_of("n1")));
    network.endpoint(1).receive(true);
    RollCall roll_call = call(network.endpoint(0));

    const auto ranks = roll_call.gather(enrol_of("n0"), 20s);
    network.break_endpoint(1);

    ASSERT_FALSE(ranks.ok());
    EXPECT_THAT(ranks.error().message, HasSubstr("rank 1 runs muster 0.0.9 (abcdef), but rank 0"));
}

TEST_F(RollCallTest, ANodeThatDoesNotShareTheStorageIsNamed) {
    InProcessNetwork network(2);
    std::atomic<int> left = 1;
    std::thread one([&] {
        const auto enlisted = answer_roll_call(network.endpoint(1), enrol_of("n1"), 20s);
        tell_ready(network.endpoint(1), {"does not see it: set storage.path"});
        wait_until_sent(network.endpoint(1), {0}, 20s);
        --left;
    });
    RollCall roll_call = call(network.endpoint(0));
    const Roles roles = assign_roles(roll_call.gather(enrol_of("n0"), 20s).value(), {}).value();

    const auto ready = roll_call.enlist(roles, options());

    go_on(network.endpoint(0), left);
    one.join();
    network.break_endpoint(1);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error().message, "node n1 does not see it: set storage.path");
}

TEST_F(RollCallTest, WhoWaitsForARoleIsSentAwayWhenThereIsNoRun) {
    InProcessNetwork network(2);
    Enlisted got;
    std::thread one([&] { serve(network.endpoint(1), "n1", got); });
    { RollCall roll_call = call(network.endpoint(0)); }
    one.join();

    EXPECT_EQ(got.role, RankRole::Dismissed);
    EXPECT_TRUE(got.orderly);
}

}  // namespace
}  // namespace muster
