// SPDX-License-Identifier: Apache-2.0
//
// What an agent does about checkpoints and about the warning before the end of time.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "agent/agent.hpp"
#include "agent/launch_plan.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr MemberKey kMember{TrialId{3}, AttemptId{1, 5}, MemberId{0}};

NodeInventory node() {
    return {.name = "n1", .cpu = Amount::whole(2), .cores = {{{0}, 0}, {{1}, 0}}};
}

Setup setup(CheckpointStorage storage = CheckpointStorage::Shared, std::string path = "") {
    TrialSpec trial;
    trial.command = {"train"};
    return {
        .epoch = 1,
        .experiment = "e",
        .experiment_dir = "/x/e",
        .trial = std::move(trial),
        .checkpoint_storage = storage,
        .checkpoint_path = std::move(path),
        .warning_signal = 10};
}

/// An agent that runs kMember, since 0 s.
Agent running_agent(AgentOptions options = {}) {
    Agent agent(std::move(options));
    agent.handle(NodeProbed{node(), 0}, {});
    agent.handle(HeadSaid{setup()}, {});
    agent.handle(HeadSaid{Start{.key = kMember, .cores = {0}, .cpu = Amount::whole(1)}}, {});
    agent.handle(MemberStarted{kMember, 100, ""}, {});
    return agent;
}

AgentCommands told(FromAgent message) {
    return {TellHead{std::move(message)}};
}

TEST(AgentSavingTest, ACheckpointWithoutAStepHasTheLastOneThatWasReported) {
    Agent agent = running_agent();
    agent.handle(ReportArrived{kMember, {{"step", 7}}}, {});

    EXPECT_EQ(
        agent.handle(CheckpointArrived{kMember, 1, std::nullopt, 64}, {}),
        told(CheckpointSaved{kMember, 1, 7, 64})
    );
    EXPECT_EQ(
        agent.handle(CheckpointArrived{kMember, 2, 2.5, 64}, {}),
        told(CheckpointSaved{kMember, 2, 2.5, 64})
    );
}

TEST(AgentSavingTest, WhatWasReportedBeforeACheckpointIsToldBeforeIt) {
    Agent agent = running_agent({.reports_per_second = 1});
    agent.handle(ReportArrived{kMember, {{"step", 1}}}, {});
    EXPECT_EQ(agent.handle(ReportArrived{kMember, {{"step", 2}}}, {}), AgentCommands{});

    const AgentCommands commands =
        agent.handle(CheckpointArrived{kMember, 1, std::nullopt, 64}, {});

    EXPECT_EQ(
        commands,
        (AgentCommands{
            TellHead{Reported{kMember, {2, {}}, 0}}, TellHead{CheckpointSaved{kMember, 1, 2, 64}}})
    );
}

TEST(AgentSavingTest, ACheckpointThatIsDurableIsAnsweredOnceItsTrialStillRuns) {
    Agent agent = running_agent();

    EXPECT_EQ(
        agent.handle(HeadSaid{CheckpointDurable{kMember, 4}}, {}),
        (AgentCommands{AnswerCheckpoint{kMember, 4}})
    );
    agent.handle(MemberEnded{kMember, {}, {}}, {});
    EXPECT_EQ(agent.handle(HeadSaid{CheckpointDurable{kMember, 5}}, {}), AgentCommands{});
}

TEST(AgentSavingTest, ADroppedCheckpointIsRemovedFromItsTrialsDirectory) {
    Agent agent = running_agent();

    EXPECT_EQ(
        agent.handle(HeadSaid{DeleteCheckpoint{TrialId{9}, 2}}, {}),
        (AgentCommands{RemoveCheckpoint{"/x/e/00009/checkpoints", 2}})
    );
}

TEST(AgentSavingTest, ARunningMemberIsWarnedWithTheSignalOfChoice) {
    Agent agent = running_agent();

    EXPECT_EQ(
        agent.handle(HeadSaid{Warn{kMember, 105s}}, {}),
        (AgentCommands{WarnMember{kMember, 105s, 10}})
    );
}

TEST(AgentSavingTest, AMemberThatIsAskedToStopIsNotWarned) {
    Agent agent = running_agent();
    agent.handle(HeadSaid{Stop{kMember, StopKind::Graceful}}, {});

    EXPECT_EQ(agent.handle(HeadSaid{Warn{kMember, 105s}}, {}), AgentCommands{});
}

TEST(AgentSavingTest, WordsOfOtherNodesAreHandedOn) {
    Agent agent = running_agent();

    EXPECT_EQ(
        agent.handle(PeerWord{NodeId{2}, "a piece, please"}, {}),
        told(ToPeer{NodeId{2}, "a piece, please"})
    );
    EXPECT_EQ(
        agent.handle(HeadSaid{FromPeer{NodeId{2}, "a piece"}}, {}),
        (AgentCommands{
            HandFromPeer{NodeId{2}, "a piece", checkpoint_root(setup(), node(), AgentOptions{})}})
    );
    EXPECT_EQ(
        agent.handle(HeadSaid{PeerUnreachable{NodeId{2}}}, {}),
        (AgentCommands{HandFromPeer{NodeId{2}, std::nullopt, ""}})
    );
}

TEST(AgentSavingTest, CheckpointsOnANodeAreToldApartByUserExperimentAndNode) {
    const AgentOptions options{.scratch_dir = "/tmp/job", .user = "1000"};
    const muster::Setup with_path = setup(CheckpointStorage::Node, "/local");
    muster::Setup elsewhere = with_path;
    elsewhere.experiment_dir = "/y/e";

    const std::string own = checkpoint_dir(with_path, node(), TrialId{3}, options);

    EXPECT_EQ(own.substr(0, 21), "/local/muster-1000/e-");
    EXPECT_EQ(own.substr(own.size() - 9), "/n1/00003");
    EXPECT_NE(own, checkpoint_dir(elsewhere, node(), TrialId{3}, options));
    EXPECT_EQ(
        checkpoint_dir(setup(CheckpointStorage::Node), node(), TrialId{3}, options).substr(0, 9),
        "/tmp/job/"
    );
}

}  // namespace
}  // namespace muster
