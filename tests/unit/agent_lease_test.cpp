// SPDX-License-Identifier: Apache-2.0
//
// What an agent does while it does not hear of its head. Heartbeats go every 5 s, the lease is 45
// s.

#include <utility>

#include <gtest/gtest.h>

#include "agent/agent.hpp"

namespace muster {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr MemberKey kMember{TrialId{3}, AttemptId{1, 5}, MemberId{0}};

TimePoint at(Duration time) {
    return {time};
}

NodeInventory node() {
    return {.name = "n1", .cpu = Amount::whole(2), .cores = {{{0}, 0}, {{1}, 0}}};
}

Setup setup(TrialSpec trial = {}) {
    trial.command = {"train"};
    trial.workdir = "/w";
    return {.epoch = 1, .experiment = "e", .experiment_dir = "/x/e", .trial = std::move(trial)};
}

Start start() {
    return {.key = kMember, .cores = {0}, .cpu = Amount::whole(1)};
}

/// An agent with a lease that said Hello at 0 s and has heard nothing yet.
Agent new_agent() {
    Agent agent({.heartbeat = seconds{5}, .lease = seconds{45}, .rejoin = minutes{10}});
    agent.handle(NodeProbed{node(), 1}, at({}));
    return agent;
}

/// … that the head took in and that runs kMember.
Agent running_agent(const Setup& message = setup()) {
    Agent agent = new_agent();
    agent.handle(HeadSaid{message}, at({}));
    agent.handle(HeadSaid{start()}, at({}));
    agent.handle(MemberStarted{kMember, 100, ""}, at({}));
    return agent;
}

/// All that the agent does by itself until then.
AgentCommands tick_until(Agent& agent, TimePoint end) {
    AgentCommands all;
    while (agent.next_deadline() <= end) {
        for (AgentCommand& command : agent.handle(AgentTick{}, agent.next_deadline())) {
            all.push_back(std::move(command));
        }
    }
    return all;
}

AgentCommands heartbeats(std::uint64_t first, std::uint64_t last) {
    AgentCommands all;
    for (std::uint64_t number = first; number <= last; ++number) {
        all.emplace_back(TellHead{Heartbeat{number}});
    }
    return all;
}

AgentCommands kill() {
    return {EndMember{kMember, StopKind::Kill}};
}

AgentCommands comes_anew(std::uint32_t incarnation) {
    return {BeginAnew{incarnation}, TellHead{Hello{incarnation, node()}}};
}

TEST(AgentLeaseTest, KillsItsMembersWhenNoHeartbeatIsAnsweredForTheLease) {
    Agent agent = running_agent();

    EXPECT_EQ(tick_until(agent, at(seconds{44})), heartbeats(1, 8));
    EXPECT_EQ(tick_until(agent, at(seconds{45})), kill());
    EXPECT_EQ(tick_until(agent, at(seconds{500})), AgentCommands{});
}

TEST(AgentLeaseTest, CountsFromWhenTheAnsweredHeartbeatWasSent) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{12}));

    // Heartbeat 2 was sent at 10 s.
    agent.handle(HeadSaid{Alive{2}}, at(seconds{30}));

    EXPECT_EQ(tick_until(agent, at(seconds{54})), heartbeats(3, 10));
    EXPECT_EQ(tick_until(agent, at(seconds{55})), kill());
}

TEST(AgentLeaseTest, AnAnswerToAnEarlierHeartbeatTakesNothingBack) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{12}));

    agent.handle(HeadSaid{Alive{2}}, at(seconds{12}));
    agent.handle(HeadSaid{Alive{1}}, at(seconds{13}));
    agent.handle(HeadSaid{Alive{77}}, at(seconds{13}));

    tick_until(agent, at(seconds{54}));
    EXPECT_EQ(agent.member_count(), 1U);
    EXPECT_EQ(tick_until(agent, at(seconds{55})), kill());
}

TEST(AgentLeaseTest, AnsweredHeartbeatsKeepItForEver) {
    Agent agent = running_agent();

    for (std::uint64_t number = 1; number <= 1000; ++number) {
        const TimePoint now = agent.next_deadline();
        EXPECT_EQ(agent.handle(AgentTick{}, now), heartbeats(number, number));
        agent.handle(HeadSaid{Alive{number}}, now);
    }

    EXPECT_EQ(agent.member_count(), 1U);
}

TEST(AgentLeaseTest, ComesAnewOnceNoMemberIsLeftAndTellsNothingOfThem) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{45}));

    EXPECT_EQ(agent.handle(ReportArrived{kMember, {{"x", 1}}}, at(seconds{46})), AgentCommands{});
    EXPECT_EQ(agent.handle(HeadSaid{Alive{3}}, at(seconds{46})), AgentCommands{});
    EXPECT_EQ(
        agent.handle(MemberEnded{kMember, {EndCause::Signalled, 9, ""}, {}, ""}, at(seconds{46})),
        comes_anew(2)
    );
    EXPECT_EQ(
        agent.handle(MemberEnded{kMember, {EndCause::Signalled, 9, ""}, {}, ""}, at(seconds{46})),
        AgentCommands{}
    );
}

TEST(AgentLeaseTest, ComesAnewAtOnceWhenNothingRuns) {
    Agent agent = new_agent();
    agent.handle(HeadSaid{setup()}, at({}));
    tick_until(agent, at(seconds{44}));

    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{45})), comes_anew(2));
}

TEST(AgentLeaseTest, ServesANewSessionAsIfItWereTheFirst) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{45}));
    agent.handle(MemberEnded{kMember, {EndCause::Signalled, 9, ""}, {}, ""}, at(seconds{46}));

    agent.handle(HeadSaid{setup()}, at(seconds{50}));
    const AgentCommands launch = agent.handle(HeadSaid{start()}, at(seconds{50}));

    ASSERT_EQ(launch.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<Launch>(launch.front()));
    // Heartbeats go on, from the Hello, and so does the lease.
    EXPECT_EQ(agent.next_deadline(), at(seconds{51}));
    EXPECT_EQ(tick_until(agent, at(seconds{90})), heartbeats(9, 16));
    EXPECT_EQ(tick_until(agent, at(seconds{91})), kill());
}

TEST(AgentLeaseTest, LeavesWhenItIsNotTakenBack) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{45}));
    agent.handle(MemberEnded{kMember, {EndCause::Signalled, 9, ""}, {}, ""}, at(seconds{46}));

    tick_until(agent, at(seconds{645}));
    const AgentCommands last = agent.handle(AgentTick{}, at(seconds{646}));

    EXPECT_EQ(last, (AgentCommands{LeaveNode{}}));
    EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST(AgentLeaseTest, LeavesWhenAMemberCanNotBeKilledForSoLong) {
    Agent agent = running_agent();
    tick_until(agent, at(seconds{45}));

    EXPECT_EQ(tick_until(agent, at(seconds{645})), (AgentCommands{LeaveNode{}}));
}

TEST(AgentLeaseTest, NothingRunsOutBeforeTheHeadHasAnsweredHello) {
    Agent agent = new_agent();

    // The head's disk is slow; it must hear of the node all the same.
    EXPECT_EQ(tick_until(agent, at(seconds{100})), heartbeats(1, 20));
    agent.handle(HeadSaid{Alive{20}}, at(seconds{100}));
    agent.handle(HeadSaid{setup()}, at(seconds{101}));

    EXPECT_EQ(tick_until(agent, at(seconds{144})), heartbeats(21, 28));
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{145})), comes_anew(2));
}

TEST(AgentLeaseTest, LeavesWhenItIsNeverTakenIn) {
    Agent agent = new_agent();

    tick_until(agent, at(seconds{599}));

    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{600})), (AgentCommands{LeaveNode{}}));
    EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST(AgentLeaseTest, ASetupReplacesTheOneBefore) {
    Agent agent = new_agent();
    agent.handle(HeadSaid{setup()}, at({}));
    TrialSpec other;
    other.time_limit = seconds{7};

    agent.handle(HeadSaid{setup(other)}, at({}));
    agent.handle(HeadSaid{start()}, at(seconds{1}));

    tick_until(agent, at(seconds{7}));
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{8})), kill());
}

TEST(AgentLeaseTest, TimeInWhichItsLoopStoodStillCountsForTheLeaseAlone) {
    Agent agent = running_agent(setup({.time_limit = seconds{20}}));
    tick_until(agent, at(seconds{5}));
    agent.handle(HeadSaid{Alive{1}}, at(seconds{5}));

    EXPECT_EQ(agent.handle(StoodStill{seconds{39}}, at(seconds{6})), AgentCommands{});
    EXPECT_EQ(agent.next_deadline(), at(seconds{10}));
    EXPECT_EQ(tick_until(agent, at(seconds{10})), heartbeats(2, 2));
    EXPECT_EQ(agent.handle(StoodStill{seconds{1}}, at(seconds{10})), AgentCommands{});

    EXPECT_EQ(agent.next_deadline(), at(seconds{10}));
    EXPECT_EQ(tick_until(agent, at(seconds{10})), kill());
}

TEST(AgentLeaseTest, ADismissalOrTheHeadsLossEndsAllWaiting) {
    Agent killing = running_agent();
    tick_until(killing, at(seconds{45}));
    EXPECT_EQ(killing.handle(HeadSaid{Dismiss{}}, at(seconds{46})), kill());
    EXPECT_EQ(
        killing.handle(MemberEnded{kMember, {}, {}, ""}, at(seconds{46})),
        (AgentCommands{LeaveNode{}})
    );

    Agent waiting = new_agent();
    EXPECT_EQ(waiting.handle(HeadLost{}, at(seconds{1})), (AgentCommands{LeaveNode{}}));
}

TEST(AgentLeaseTest, ASetupThatComesTooLateStartsNothing) {
    Agent agent = new_agent();
    tick_until(agent, at(seconds{100}));

    agent.handle(HeadSaid{setup()}, at(seconds{101}));

    // The head may have lost this node by now, and started the member elsewhere.
    EXPECT_EQ(agent.handle(HeadSaid{start()}, at(seconds{101})), comes_anew(2));
}

}  // namespace
}  // namespace muster
