// SPDX-License-Identifier: Apache-2.0
//
// The agent's decisions, driven with literals: events in, whole commands out.

#include "agent/agent.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MemberKey kMember{TrialId{3}, AttemptId{1, 5}, MemberId{0}};
constexpr MemberKey kOlder{TrialId{3}, AttemptId{1, 2}, MemberId{0}};

TimePoint at(Duration time) {
    return {time};
}

NodeInventory node() {
    return {.name = "n1", .cpu = Amount::whole(2), .cores = {{{0}, 0}, {{1}, 0}}};
}

Setup setup(TrialSpec trial = {}, std::optional<ObjectiveSpec> objective = {}) {
    trial.command = {"train"};
    trial.workdir = "/w";
    return {
        .epoch = 1,
        .experiment = "e",
        .experiment_dir = "/x/e",
        .trial = std::move(trial),
        .objective = std::move(objective),
    };
}

Start start(MemberKey key = kMember) {
    return {.key = key, .cores = {0}, .cpu = Amount::whole(1), .last_step = 0};
}

/// An agent that knows its node and its experiment.
Agent ready_agent(const Setup& message, AgentOptions options = {}) {
    Agent agent(std::move(options));
    agent.handle(NodeProbed{node(), 0}, at(seconds{0}));
    agent.handle(HeadSaid{message}, at(seconds{0}));
    return agent;
}

/// … that also runs kMember, since 0 s.
Agent running_agent(const Setup& message, AgentOptions options = {}) {
    Agent agent = ready_agent(message, std::move(options));
    agent.handle(HeadSaid{start()}, at(seconds{0}));
    agent.handle(MemberStarted{kMember, 100, ""}, at(seconds{0}));
    return agent;
}

AgentCommands report(Agent& agent, std::vector<ValueMember> metrics, TimePoint now) {
    return agent.handle(ReportArrived{kMember, std::move(metrics)}, now);
}

AgentCommands end(Agent& agent, Outcome outcome, TimePoint now) {
    return agent.handle(MemberEnded{kMember, std::move(outcome), {}}, now);
}

AgentCommands told(FromAgent message) {
    return {TellHead{std::move(message)}};
}

TEST(AgentTest, SaysHelloOnceItKnowsItsNode) {
    Agent agent({});

    const AgentCommands commands = agent.handle(NodeProbed{node(), 4}, at(seconds{1}));

    EXPECT_EQ(commands, told(Hello{4, node()}));
    EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST(AgentTest, SaysThatItLivesAtEveryHeartbeat) {
    Agent agent({.heartbeat = seconds{2}});
    agent.handle(NodeProbed{node(), 0}, at(seconds{1}));

    EXPECT_EQ(agent.next_deadline(), at(seconds{3}));
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{2})), AgentCommands{});
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{3})), told(Heartbeat{1}));
    EXPECT_EQ(agent.next_deadline(), at(seconds{5}));
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{5})), told(Heartbeat{2}));
}

TEST(AgentTest, LaunchesWhatTheHeadStartsAndTellsHowItWent) {
    Agent agent = ready_agent(setup());

    const AgentCommands launch = agent.handle(HeadSaid{start()}, at(seconds{1}));

    ASSERT_EQ(launch.size(), 1U);
    ASSERT_TRUE(std::holds_alternative<Launch>(launch[0]));
    EXPECT_EQ(std::get<Launch>(launch[0]).plan.argv, std::vector<std::string>{"train"});
    EXPECT_EQ(agent.member_count(), 1U);
    EXPECT_EQ(
        agent.handle(MemberStarted{kMember, 77, ""}, at(seconds{1})), told(Started{kMember, 77})
    );
    const Usage usage{seconds{3}, seconds{2}, 4096};
    EXPECT_EQ(
        agent.handle(MemberEnded{kMember, {EndCause::Exited, 1, "boom"}, usage}, at(seconds{4})),
        told(Ended{kMember, {EndCause::Exited, 1, "boom"}, usage})
    );
    EXPECT_EQ(agent.member_count(), 0U);
}

TEST(AgentTest, ABindingThatFailedIsRemarked) {
    Agent agent = ready_agent(setup());
    agent.handle(HeadSaid{start()}, at(seconds{0}));

    EXPECT_EQ(
        agent.handle(MemberStarted{kMember, 77, "EINVAL"}, at(seconds{1})),
        (AgentCommands{
            TellHead{Started{kMember, 77}},
            TellHead{Remark{kMember, "not bound as planned: EINVAL"}},
        })
    );
}

TEST(AgentTest, AStartThatItCannotCarryOutEndsAtOnce) {
    Agent agent({});
    agent.handle(NodeProbed{node(), 0}, at(seconds{0}));

    EXPECT_EQ(
        agent.handle(HeadSaid{start()}, at(seconds{0})),
        told(Ended{
            kMember,
            {EndCause::SpawnFailed,
             0,
             "the agent was asked to start it before it knew the experiment"},
            {}})
    );

    agent.handle(HeadSaid{setup()}, at(seconds{0}));
    Start elsewhere = start();
    elsewhere.cores = {8};

    EXPECT_EQ(
        agent.handle(HeadSaid{elsewhere}, at(seconds{0})),
        told(Ended{kMember, {EndCause::SpawnFailed, 0, "core 8 was given, but node n1 has 2"}, {}})
    );
    EXPECT_EQ(agent.member_count(), 0U);
}

TEST(AgentTest, WhatConcernsNoMemberOfItsOwnChangesNothing) {
    Agent agent = running_agent(setup());
    const auto silent = [&](const AgentEvent& event) {
        return agent.handle(event, at(seconds{1})).empty();
    };

    EXPECT_TRUE(silent(HeadSaid{start()}));
    EXPECT_TRUE(silent(HeadSaid{Stop{kOlder, StopKind::Kill}}));
    EXPECT_TRUE(silent(HeadSaid{SetCores{kOlder, {1}}}));
    EXPECT_TRUE(silent(MemberStarted{kOlder, 1, ""}));
    EXPECT_TRUE(silent(MemberEnded{kOlder, {}, {}}));
    EXPECT_TRUE(silent(ReportArrived{kOlder, {{"x", 1}}}));
    EXPECT_TRUE(silent(ReportRefused{kOlder, "no"}));
    EXPECT_EQ(agent.member_count(), 1U);
}

TEST(AgentTest, BindsAMemberAnewUnlessItsCoresAreLogical) {
    Agent agent = running_agent(setup());

    EXPECT_EQ(
        agent.handle(HeadSaid{SetCores{kMember, {0, 1}}}, at(seconds{1})),
        (AgentCommands{Rebind{kMember, {0, 1}}})
    );
    EXPECT_EQ(
        agent.handle(HeadSaid{SetCores{kMember, {7}}}, at(seconds{1})),
        told(Remark{kMember, "not bound anew: core 7 was given, but node n1 has 2"})
    );
}

TEST(AgentTest, TakesTheStepFromTheReportElseCountsOn) {
    Agent agent = ready_agent(setup({.time_attr = "epoch"}));
    Start resumed = start();
    resumed.last_step = 7;
    agent.handle(HeadSaid{resumed}, at(seconds{0}));

    EXPECT_EQ(
        report(agent, {{"loss", 0.5}}, at(seconds{1})),
        told(Reported{kMember, {8, {{"loss", 0.5}}}, 0})
    );
    EXPECT_EQ(
        report(agent, {{"epoch", 20}, {"step", 3}}, at(seconds{1})),
        told(Reported{kMember, {20, {{"step", 3}}}, 0})
    );
    EXPECT_EQ(
        report(agent, {{"step", 2.5}, {"loss", 1.0}}, at(seconds{1})),
        told(Reported{kMember, {2.5, {{"loss", 1.0}}}, 0})
    );
    EXPECT_EQ(report(agent, {}, at(seconds{1})), told(Reported{kMember, {3.5, {}}, 0}));
}

TEST(AgentTest, AStepThatIsNoNumberIsRemarkedOnceAndCountedOn) {
    Agent agent = running_agent(setup());

    EXPECT_EQ(
        report(agent, {{"step", "two"}}, at(seconds{1})),
        (AgentCommands{
            TellHead{Remark{
                kMember,
                "reported a step that is not a number: such reports are counted as the step after "
                "the last"}},
            TellHead{Reported{kMember, {1, {}}, 0}},
        })
    );
    EXPECT_EQ(report(agent, {{"step", true}}, at(seconds{1})), told(Reported{kMember, {2, {}}, 0}));
}

TEST(AgentTest, AMissingObjectiveIsRemarkedOnceWithWhatWasReported) {
    Agent agent = running_agent(setup({}, ObjectiveSpec{"loss", Mode::Min}));

    EXPECT_EQ(
        report(agent, {{"step", 1}, {"acc", 0.5}}, at(seconds{1})),
        (AgentCommands{
            TellHead{Remark{kMember, "a report has no metric loss: it has step, acc"}},
            TellHead{Reported{kMember, {1, {{"acc", 0.5}}}, 0}},
        })
    );
    EXPECT_EQ(
        report(agent, {{"acc", 0.5}}, at(seconds{1})),
        told(Reported{kMember, {2, {{"acc", 0.5}}}, 0})
    );
}

TEST(AgentTest, AnObjectiveThatIsNoNumberIsRemarked) {
    Agent agent = running_agent(setup({}, ObjectiveSpec{"loss", Mode::Min}));

    EXPECT_EQ(
        report(agent, {{"loss", "low"}}, at(seconds{1})),
        (AgentCommands{
            TellHead{Remark{kMember, "reported loss as \"low\", which is no number"}},
            TellHead{Reported{kMember, {1, {{"loss", "low"}}}, 0}},
        })
    );
}

TEST(AgentTest, TellsThreeRefusedReportsOfAnAttempt) {
    Agent agent = running_agent(setup());
    const auto refused = [&] { return agent.handle(ReportRefused{kMember, "bad"}, at({})); };

    EXPECT_EQ(refused(), told(Remark{kMember, "bad"}));
    EXPECT_EQ(refused(), told(Remark{kMember, "bad"}));
    EXPECT_EQ(refused(), told(Remark{kMember, "bad (more of this attempt are not told)"}));
    EXPECT_EQ(refused(), AgentCommands{});
}

TEST(AgentTest, ReportsThatComeTooFastAreHeldBackAndTheNewestWins) {
    Agent agent = running_agent(setup(), {.reports_per_second = 2});
    report(agent, {{"step", 1}}, at({}));
    report(agent, {{"step", 2}}, at({}));

    EXPECT_EQ(report(agent, {{"step", 3}}, at({})), AgentCommands{});
    EXPECT_EQ(report(agent, {{"step", 4}}, at(milliseconds{1})), AgentCommands{});
    EXPECT_EQ(report(agent, {{"step", 5}}, at(milliseconds{2})), AgentCommands{});

    EXPECT_EQ(agent.next_deadline(), at(milliseconds{500}));
    EXPECT_EQ(agent.handle(AgentTick{}, at(milliseconds{499})), AgentCommands{});
    EXPECT_EQ(
        agent.handle(AgentTick{}, at(milliseconds{500})), told(Reported{kMember, {5, {}}, 2})
    );
    EXPECT_EQ(agent.next_deadline(), kNever);
    // The second's worth is used up: one report in half a second from now on.
    EXPECT_EQ(report(agent, {{"step", 6}}, at(milliseconds{600})), AgentCommands{});
    EXPECT_EQ(
        report(agent, {{"step", 7}}, at(milliseconds{1000})), told(Reported{kMember, {7, {}}, 1})
    );
    EXPECT_EQ(agent.handle(AgentTick{}, at(milliseconds{1100})), AgentCommands{});
}

TEST(AgentTest, AHeldReportGoesBeforeTheEndOfItsMember) {
    Agent agent = running_agent(setup(), {.reports_per_second = 1});
    report(agent, {{"step", 1}}, at({}));
    report(agent, {{"step", 2}}, at({}));

    EXPECT_EQ(
        end(agent, {}, at(milliseconds{1})),
        (AgentCommands{
            TellHead{Reported{kMember, {2, {}}, 0}},
            TellHead{Ended{kMember, {}, {}}},
        })
    );
    EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST(AgentTest, ATimeLimitKillsOnTimeAndIsTheReasonOfTheEnd) {
    Agent agent = running_agent(setup({.time_limit = seconds{10}}));

    EXPECT_EQ(agent.next_deadline(), at(seconds{10}));
    EXPECT_EQ(
        agent.handle(AgentTick{}, at(seconds{10})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    // What the head asks for later changes nothing.
    EXPECT_EQ(
        agent.handle(HeadSaid{Stop{kMember, StopKind::Kill}}, at(seconds{10})), AgentCommands{}
    );
    EXPECT_EQ(
        end(agent, {EndCause::Signalled, 9, "epoch 3"}, at(seconds{10})),
        told(Ended{kMember, {EndCause::TimeLimit, 9, "10.0s"}, {}, "epoch 3"})
    );
}

TEST(AgentTest, ASilentMemberIsKilledSoLongAfterItsLastReport) {
    Agent agent = running_agent(setup({.report_timeout = seconds{10}}));
    report(agent, {{"x", 1}}, at(seconds{4}));

    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{10})), AgentCommands{});
    EXPECT_EQ(agent.next_deadline(), at(seconds{14}));
    EXPECT_EQ(
        agent.handle(AgentTick{}, at(seconds{14})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    EXPECT_EQ(
        end(agent, {EndCause::Signalled, 9, ""}, at(seconds{14})),
        told(Ended{kMember, {EndCause::ReportTimeout, 9, "no report for 10.0s"}, {}})
    );
}

TEST(AgentTest, AStoppedMemberIsToldThenSignalledAndEndsAsStopped) {
    Agent agent = running_agent(setup({.report_timeout = seconds{10}}));

    EXPECT_EQ(
        agent.handle(HeadSaid{Stop{kMember, StopKind::Graceful}}, at(seconds{1})),
        (AgentCommands{TellMemberToStop{kMember}, EndMember{kMember, StopKind::Graceful}})
    );
    // It is no longer expected to report, and softer or equal wishes change nothing.
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{10})), AgentCommands{});
    EXPECT_EQ(
        agent.handle(HeadSaid{Stop{kMember, StopKind::GoalReached}}, at(seconds{11})),
        AgentCommands{}
    );
    EXPECT_EQ(
        agent.handle(HeadSaid{Stop{kMember, StopKind::Kill}}, at(seconds{12})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    EXPECT_EQ(
        end(agent, {EndCause::Signalled, 9, ""}, at(seconds{12})),
        told(Ended{kMember, {EndCause::Stopped, 9, "signal 9 (SIGKILL)"}, {}})
    );
}

TEST(AgentTest, AMemberAtItsGoalMayEndByItselfWithinTheGrace) {
    Agent agent = running_agent(setup({.grace = seconds{5}}));

    EXPECT_EQ(
        agent.handle(HeadSaid{Stop{kMember, StopKind::GoalReached}}, at(seconds{1})),
        (AgentCommands{TellMemberToStop{kMember}})
    );
    EXPECT_EQ(agent.next_deadline(), at(seconds{6}));
    EXPECT_EQ(
        end(agent, {EndCause::Exited, 0, ""}, at(seconds{3})),
        told(Ended{kMember, {EndCause::Exited, 0, ""}, {}})
    );
}

TEST(AgentTest, AMemberThatStaysAtItsGoalIsStoppedAfterTheGrace) {
    Agent agent = running_agent(setup({.grace = seconds{5}}));
    agent.handle(HeadSaid{Stop{kMember, StopKind::GoalReached}}, at(seconds{1}));

    EXPECT_EQ(
        agent.handle(AgentTick{}, at(seconds{6})),
        (AgentCommands{EndMember{kMember, StopKind::Graceful}})
    );
    EXPECT_EQ(
        end(agent, {EndCause::Signalled, 15, ""}, at(seconds{6})),
        told(Ended{kMember, {EndCause::Stopped, 15, "signal 15 (SIGTERM)"}, {}})
    );
}

TEST(AgentTest, AStopThatCameFirstStaysTheReasonWhenTheTimeLimitKills) {
    Agent agent = running_agent(setup({.time_limit = seconds{10}}));
    agent.handle(HeadSaid{Stop{kMember, StopKind::Graceful}}, at(seconds{9}));

    EXPECT_EQ(
        agent.handle(AgentTick{}, at(seconds{10})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    EXPECT_EQ(
        end(agent, {EndCause::Signalled, 9, ""}, at(seconds{10})),
        told(Ended{kMember, {EndCause::Stopped, 9, "signal 9 (SIGKILL)"}, {}})
    );
}

TEST(AgentTest, KillsEverythingAndLeavesWhenTheHeadIsLost) {
    Agent agent = running_agent(setup({.time_limit = seconds{10}}), {.heartbeat = seconds{1}});

    EXPECT_EQ(
        agent.handle(HeadLost{}, at(seconds{1})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    EXPECT_EQ(agent.handle(HeadLost{}, at(seconds{1})), AgentCommands{});
    EXPECT_EQ(end(agent, {}, at(seconds{2})), (AgentCommands{LeaveNode{}}));
    EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST(AgentTest, LeavesWithoutAMemberThatCanNotBeKilled) {
    Agent agent = running_agent(setup());
    agent.handle(HeadLost{}, at(seconds{1}));

    EXPECT_EQ(agent.next_deadline(), at(seconds{31}));
    EXPECT_EQ(agent.handle(AgentTick{}, at(seconds{31})), (AgentCommands{LeaveNode{}}));
    EXPECT_EQ(agent.next_deadline(), kNever);
    EXPECT_EQ(end(agent, {}, at(seconds{32})), AgentCommands{});
}

TEST(AgentTest, ABrokenNodeKillsThenSaysFarewellAndLeaves) {
    Agent agent = running_agent(setup());

    EXPECT_EQ(
        agent.handle(NodeBroken{"its spawner ended"}, at(seconds{1})),
        (AgentCommands{EndMember{kMember, StopKind::Kill}})
    );
    EXPECT_EQ(agent.handle(NodeBroken{"again"}, at(seconds{1})), AgentCommands{});
    EXPECT_EQ(
        end(agent, {}, at(seconds{2})),
        (AgentCommands{TellHead{Farewell{"its spawner ended"}}, LeaveNode{}})
    );
}

TEST(AgentTest, TheLastLinesOfAMemberArePassedOn) {
    Agent agent = running_agent(setup());

    EXPECT_EQ(
        agent.handle(MemberEnded{kMember, {EndCause::Exited, 1, ""}, {}, "boom\n"}, at({})),
        told(Ended{kMember, {EndCause::Exited, 1, ""}, {}, "boom\n"})
    );
}

TEST(AgentTest, LeavesAtOnceWhenDismissedWithNothingRunning) {
    Agent agent = ready_agent(setup());

    EXPECT_EQ(agent.handle(HeadSaid{Dismiss{}}, at(seconds{1})), (AgentCommands{LeaveNode{}}));
    EXPECT_EQ(agent.handle(HeadSaid{start()}, at(seconds{1})), AgentCommands{});
    EXPECT_EQ(agent.handle(HeadLost{}, at(seconds{1})), AgentCommands{});
}

TEST(AgentTest, ManyMembersAreHeldToTheirOwnLimits) {
    Agent agent = ready_agent(setup({.time_limit = seconds{10}}));
    for (std::uint32_t i = 0; i < 3; ++i) {
        const MemberKey key{TrialId{i}, AttemptId{1, i}, MemberId{0}};
        agent.handle(HeadSaid{start(key)}, at(seconds{i}));
    }

    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(agent.next_deadline(), at(seconds{10 + i}));
        EXPECT_EQ(
            agent.handle(AgentTick{}, at(seconds{10 + i})),
            (AgentCommands{EndMember{{TrialId{i}, AttemptId{1, i}, MemberId{0}}, StopKind::Kill}})
        );
    }
    EXPECT_EQ(agent.next_deadline(), kNever);
}

}  // namespace
}  // namespace muster
