// SPDX-License-Identifier: Apache-2.0
//
// Nodes on which everything fails, and runs in which nothing works.

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "head/head.hpp"
#include "placement/cluster.hpp"
#include "support/head_case.hpp"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::HeadCase;
using ::testing::IsEmpty;
using testing::make_node;
using ::testing::Not;
using ::testing::SizeIs;

constexpr NodeId kNode0{0};
constexpr NodeId kNode1{1};

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "test";
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    return spec;
}

const Outcome kExit1{EndCause::Exited, 1, ""};

/// The only trial that runs on a node of one slot.
std::uint32_t trial_on(const HeadCase& test, NodeId node) {
    for (const TrialId id : test.head.active_trials()) {
        if (test.node_of(id.value) == node) {
            return id.value;
        }
    }
    ADD_FAILURE() << "nothing runs on node " << node.value;
    return 0;
}

void end_on(HeadCase& test, NodeId node, const Outcome& outcome, std::string last_lines = "") {
    const std::uint32_t trial = trial_on(test, node);
    test.handle(AgentSaid{
        node, Ended{test.key(trial), outcome, {seconds{1}}, std::move(last_lines)}});
}

std::string last_warning(const HeadCase& test) {
    std::string text;
    for (const Note& note : test.actions<Note>()) {
        text = note.level == NoteLevel::Warning ? note.text : text;
    }
    return text;
}

/// Two nodes of one slot; what runs on node 1 has failed three times.
HeadCase three_failed_on_node_1(
    std::uint32_t trials,
    ExperimentSpec given = spec(),
    RunOptions options = {}
) {
    options.expected_nodes = 2;
    HeadCase test(std::move(given), trials, options);
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});
    end_on(test, kNode1, kExit1);
    end_on(test, kNode1, kExit1);
    end_on(test, kNode1, kExit1, "loading\nlibcuda.so.1: cannot open\n");
    return test;
}

// --- nodes ---

TEST(BadNodeTest, ThreeFailuresInARowWhileOthersSucceedElsewhereSetItAside) {
    HeadCase test = three_failed_on_node_1(20);
    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);

    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 1U);
    EXPECT_TRUE(test.head.cluster().is_set_aside(kNode1));
    EXPECT_THAT(
        last_warning(test),
        AllOf(
            HasSubstr("node n1 is set aside: 3 trials failed there in a row (00001, 00002, 00003)"),
            HasSubstr("trial 00003: exit code 1; its output ended with"),
            HasSubstr("\n    libcuda.so.1: cannot open")
        )
    );
}

TEST(BadNodeTest, WhatRunsThereGoesOnAndNothingNewStartsThere) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(trial_on(test, kNode1), 4U);
    end_on(test, kNode1, {});

    EXPECT_EQ(test.state(4), TrialState::Completed);
    EXPECT_EQ(test.running(), 1U);
    EXPECT_TRUE(test.head.cluster().is_set_aside(kNode1));
}

TEST(BadNodeTest, WhatFailedThereRunsAgainElsewhereAsIfItHadNot) {
    HeadCase test = three_failed_on_node_1(5);
    EXPECT_EQ(test.head.summary().failures, 3U);

    test.trial_ends(0);

    EXPECT_EQ(test.head.summary().failures, 0U);
    EXPECT_EQ(
        test.kept<TrialReopened>(),
        (std::vector<TrialReopened>{{TrialId{1}, 1}, {TrialId{2}, 1}, {TrialId{3}, 1}})
    );
    end_on(test, kNode1, {});
    for (int again = 0; again < 3; ++again) {
        end_on(test, kNode0, {});
    }
    EXPECT_EQ(test.head.summary().completed, 5U);
    EXPECT_EQ(test.actions<Leave>(), (std::vector<Leave>{{RunEnd::Finished, ""}}));
}

TEST(BadNodeTest, WhatFailsThereLaterRunsAgainElsewhereToo) {
    HeadCase test = three_failed_on_node_1(5);
    test.trial_ends(0);
    ASSERT_EQ(trial_on(test, kNode1), 4U);

    end_on(test, kNode1, kExit1);

    EXPECT_EQ(test.state(4), TrialState::Pending);
    EXPECT_EQ(test.head.summary().failures, 0U);
    for (int again = 0; again < 4; ++again) {
        end_on(test, kNode0, {});
    }
    EXPECT_EQ(test.head.summary().completed, 5U);
}

TEST(BadNodeTest, FailuresOfTrialsThatRunAgainAnywayAreForgivenToo) {
    ExperimentSpec retrying = spec();
    retrying.failures.max_failures = 1;
    HeadCase test = three_failed_on_node_1(20, retrying);

    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().failures, 0U);
    EXPECT_EQ(test.head.trial(TrialId{1})->progress->failures, 0U);
    EXPECT_EQ(test.state(1), TrialState::Pending);
}

TEST(BadNodeTest, OneTrialThatFailsAgainAndAgainBlamesNoNode) {
    ExperimentSpec retrying = spec();
    retrying.failures.max_failures = -1;
    HeadCase test(retrying, 2, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});

    for (int attempt = 0; attempt < 10; ++attempt) {
        end_on(test, kNode1, kExit1);
    }
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
}

TEST(BadNodeTest, ASuccessThereEndsTheRow) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(trial_on(test, kNode1), 1, {{"accuracy", 0.5}});

    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_EQ(test.head.summary().failed, 3U);
}

TEST(BadNodeTest, LongTrialsElsewhereThatGoOnSucceedingAreEnough) {
    for (const bool ends : {false, true}) {
        RunOptions options;
        options.expected_nodes = 2;
        HeadCase test(spec(), 20, options);
        test.begin_with({make_node("n0", 1), make_node("n1", 1)});
        test.trial_reports(0, 1, {{"accuracy", 0.5}});
        for (int trial = 0; trial < 3; ++trial) {
            end_on(test, kNode1, kExit1);
        }
        EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);

        if (ends) {
            end_on(test, kNode0, {});
        } else {
            test.trial_reports(0, 2, {{"accuracy", 0.5}});
        }

        EXPECT_TRUE(test.head.cluster().is_set_aside(kNode1));
        EXPECT_EQ(test.head.summary().failed, 0U);
    }
}

TEST(BadNodeTest, ATrialThatGoesOnReportingThereEndsTheRow) {
    RunOptions options;
    options.expected_nodes = 2;
    HeadCase test(spec(), 20, options);
    test.begin_with({make_node("n0", 1), make_node("n1", 2)});
    std::uint32_t step = 0;
    const std::vector<TrialId> first = test.head.active_trials();
    std::vector<std::uint32_t> there;
    for (const TrialId id : first) {
        if (test.node_of(id.value) == kNode1) {
            there.push_back(id.value);
        }
    }
    ASSERT_THAT(there, SizeIs(2));
    const std::uint32_t steady = there[0];
    std::uint32_t failing = there[1];
    for (int trial = 0; trial < 6; ++trial) {
        test.trial_reports(steady, ++step, {{"accuracy", 0.5}});
        test.trial_ends(failing, kExit1);
        for (const TrialId id : test.head.active_trials()) {
            failing = test.node_of(id.value) == kNode1 && id.value != steady ? id.value : failing;
        }
        end_on(test, kNode0, {});
    }

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
}

TEST(BadNodeTest, ANodeIsNotBlamedForWhatFailsEverywhere) {
    HeadCase test(spec(), 40, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});

    // Half of all trials fail on either node.
    for (int round = 0; round < 4; ++round) {
        end_on(test, kNode0, {});
        end_on(test, kNode0, kExit1);
        end_on(test, kNode1, kExit1);
    }

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
}

TEST(BadNodeTest, UsingTooMuchMemoryIsNoFaultOfTheNode) {
    HeadCase test(spec(), 20, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1)});

    for (int trial = 0; trial < 4; ++trial) {
        end_on(test, kNode1, {EndCause::MemoryLimit, 9, "asked 1GiB, used 2GiB"});
    }
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
}

TEST(BadNodeTest, TheLastNodeIsNeverSetAside) {
    HeadCase test = three_failed_on_node_1(20);
    test.handle(NodeLost{kNode0, "its connection was reset"});
    test.node_reports(kNode0, make_node("n0", 1), 2);
    test.trial_reports(trial_on(test, kNode0), 1, {{"accuracy", 0.5}});
    ASSERT_EQ(test.head.summary().nodes_set_aside, 1U);

    for (int trial = 0; trial < 6; ++trial) {
        end_on(test, kNode0, kExit1);
    }

    EXPECT_FALSE(test.head.cluster().is_set_aside(kNode0));
}

TEST(BadNodeTest, ANodeThatAloneCanRunWhatFailedThereIsKept) {
    ExperimentSpec mixed = spec();
    mixed.resources = {
        {{{"index", {0}}}, {}}, {{}, {{{.cpu = Amount::whole(1), .gpu = Amount::whole(1)}}}}};
    HeadCase test(mixed, 20, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1, 1)});
    for (int trial = 0; trial < 4; ++trial) {
        end_on(test, kNode1, kExit1);
    }

    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_EQ(test.head.summary().failed, 4U);
}

TEST(BadNodeTest, ItIsTakenBackWhenNothingElseCanRunWhatWaits) {
    ExperimentSpec mixed = spec();
    mixed.resources = {
        {{{"index", {40}}}, {{{.cpu = Amount::whole(1), .gpu = Amount::whole(1)}}}}, {{}, {}}};
    HeadCase test(mixed, 60, {.expected_nodes = 2});
    test.begin_with({make_node("n0", 1), make_node("n1", 1, 1)});
    for (int trial = 0; trial < 3; ++trial) {
        end_on(test, kNode1, kExit1);
    }
    test.trial_reports(trial_on(test, kNode0), 1, {{"accuracy", 0.5}});
    ASSERT_EQ(test.head.summary().nodes_set_aside, 1U);

    // Until trial 40 is made.
    for (int trial = 0; trial < 40 && test.head.summary().nodes_set_aside > 0; ++trial) {
        end_on(test, kNode0, {});
    }

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_THAT(
        last_warning(test), HasSubstr("node n1 is used again: no other can run what waits")
    );
    EXPECT_THAT(test.actions<Leave>(), IsEmpty());
}

TEST(BadNodeTest, ItIsTakenBackWhenTheOthersAreLost) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(0, 1, {{"accuracy", 0.5}});
    end_on(test, kNode1, {});

    test.handle(NodeLost{kNode0, "its connection was reset"});

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_EQ(test.running(), 1U);
    EXPECT_THAT(test.actions<Leave>(), IsEmpty());
}

TEST(BadNodeTest, ItIsTakenBackWhenItsTrialsFailElsewhereToo) {
    HeadCase test = three_failed_on_node_1(5);
    test.trial_ends(0);
    ASSERT_EQ(test.head.summary().nodes_set_aside, 1U);

    end_on(test, kNode0, kExit1);
    EXPECT_EQ(test.head.summary().nodes_set_aside, 1U);
    end_on(test, kNode0, kExit1);

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_THAT(last_warning(test), HasSubstr("node n1 is used again: most of the trials"));
    EXPECT_EQ(test.head.summary().failed, 2U);
    EXPECT_EQ(test.head.summary().failures, 2U);
}

TEST(BadNodeTest, ANewerHelloClearsIt) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    test.node_reports(kNode1, make_node("n1", 1), 2);

    EXPECT_EQ(test.head.summary().nodes_set_aside, 0U);
    EXPECT_EQ(test.running(), 2U);
}

TEST(BadNodeTest, TrialsThatAlwaysFailComeToAnEnd) {
    HeadCase test(spec(), 30, {.expected_nodes = 3});
    test.begin_with({make_node("n0", 1), make_node("n1", 1), make_node("n2", 1)});

    // Trial 0 succeeds slowly; all others fail wherever they run.
    int events = 0;
    while (test.actions<Leave>().empty() && events < 1000) {
        ++events;
        if (events % 5 == 0 && test.state(0) == TrialState::Running) {
            test.trial_reports(0, events, {{"accuracy", 0.5}});
        }
        bool ended = false;
        for (const TrialId id : test.head.active_trials()) {
            if (id.value != 0 && !ended) {
                ended = true;
                test.trial_ends(id.value, kExit1);
            }
        }
        if (!ended) {
            test.trial_ends(0);
        }
    }

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
    EXPECT_EQ(test.head.summary().failed, 29U);
    EXPECT_LT(events, 150);
}

TEST(BadNodeTest, ItIsExplainedToWhatWaits) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_THAT(
        test.head.explain(TrialId{1}, test.now),
        AllOf(HasSubstr("Pending"), HasSubstr("set aside, since trials fail there: n1"))
    );
}

TEST(BadNodeTest, WhatWasReopenedIsPendingAfterARestart) {
    HeadCase test = three_failed_on_node_1(20);
    test.trial_reports(0, 1, {{"accuracy", 0.5}});
    HeadCase after(spec(), 0);

    for (const Fact& fact : test.facts) {
        ASSERT_TRUE(after.head.restore(fact, {}).ok());
    }

    EXPECT_EQ(after.state(1), TrialState::Pending);
    EXPECT_EQ(after.head.summary().failures, 0U);
    EXPECT_EQ(after.head.summary().failed, 0U);
    EXPECT_FALSE(after.head.restore(TrialReopened{TrialId{1}, 1}, {}).ok());
}

// --- the experiment ---

/// A run on one slot in which trials fail until it ends, at most so many.
std::size_t fail_all(HeadCase& test, std::size_t most) {
    std::size_t failed = 0;
    while (failed < most && test.actions<Leave>().empty() && test.running() > 0) {
        end_on(test, kNode0, kExit1, "Traceback\nModuleNotFoundError: torch\n\n");
        ++failed;
    }
    return failed;
}

TEST(NothingWorksTest, TheRunEndsWhenTheFirstEightTrialsHaveAllFailed) {
    HeadCase test(spec(), 100);
    test.begin_with({make_node("n0", 1)});

    EXPECT_EQ(fail_all(test, 100), 8U);

    const Leave leave = test.actions<Leave>().front();
    EXPECT_EQ(leave.end, RunEnd::NothingWorks);
    EXPECT_EQ(
        leave.reason,
        "nothing succeeds: the first 8 trials all failed. The last was trial 00007: exit code 1; "
        "its output ended with\n    Traceback\n    ModuleNotFoundError: torch"
    );
    EXPECT_EQ(test.kept<RunEnded>().front().end, RunEnd::NothingWorks);
    EXPECT_EQ(test.head.summary().failed, 8U);
    EXPECT_EQ(test.head.summary().cancelled, 0U);
}

TEST(NothingWorksTest, WhatStillRunsIsPutBack) {
    HeadCase test(spec(), 100);
    test.begin_with({make_node("n0", 4)});
    for (std::uint32_t trial = 0; trial < 8; ++trial) {
        EXPECT_TRUE(test.head.is_going());
        test.trial_ends(trial, kExit1);
    }

    EXPECT_FALSE(test.head.is_going());
    EXPECT_THAT(test.sent<Stop>(), SizeIs(3));
    for (std::uint32_t trial = 8; trial < 11; ++trial) {
        test.trial_ends(trial, {EndCause::Stopped, 15, ""});
        EXPECT_EQ(test.state(trial), TrialState::Pending);
    }
    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::NothingWorks);
}

TEST(NothingWorksTest, TwiceAsManyAsRanAtOnceMustHaveFailed) {
    HeadCase test(spec(), 100);
    test.begin_with({make_node("n0", 10)});

    for (std::uint32_t trial = 0; trial < 19; ++trial) {
        test.trial_ends(trial, kExit1);
    }
    EXPECT_TRUE(test.head.is_going());
    test.trial_ends(19, kExit1);

    EXPECT_FALSE(test.head.is_going());
}

TEST(NothingWorksTest, ATrialThatStillRunsMayWork) {
    HeadCase test(spec(), 100);
    test.begin_with({make_node("n0", 2)});

    for (std::uint32_t trial = 1; trial < 40; ++trial) {
        test.trial_ends(trial, kExit1);
    }

    EXPECT_TRUE(test.head.is_going());
    test.trial_ends(0, kExit1);
    EXPECT_FALSE(test.head.is_going());
}

TEST(NothingWorksTest, OneReportIsEnough) {
    HeadCase test(spec(), 30);
    test.begin_with({make_node("n0", 1)});
    test.trial_reports(0, 1, {{"accuracy", 0.5}});

    EXPECT_EQ(fail_all(test, 100), 30U);

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
}

TEST(NothingWorksTest, KeepGoingGoesOn) {
    HeadCase test(spec(), 30, {.keep_going = true});
    test.begin_with({make_node("n0", 1)});

    EXPECT_EQ(fail_all(test, 100), 30U);

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
}

TEST(NothingWorksTest, AFewTrialsThatAllFailFinish) {
    HeadCase test(spec(), 8);
    test.begin_with({make_node("n0", 1)});

    EXPECT_EQ(fail_all(test, 100), 8U);

    EXPECT_EQ(test.actions<Leave>().front().end, RunEnd::Finished);
}

TEST(NothingWorksTest, AFixedProgramGoesOnWithWhatWaited) {
    HeadCase before(spec(), 20);
    before.begin_with({make_node("n0", 1)});
    fail_all(before, 100);
    HeadCase after(spec(), 0);
    for (const Fact& fact : before.facts) {
        ASSERT_TRUE(after.head.restore(fact, {}).ok());
    }

    after.begin_with({make_node("n0", 1)});

    EXPECT_EQ(after.head.summary().failed, 8U);
    EXPECT_EQ(after.state(8), TrialState::Running);
    EXPECT_TRUE(after.head.is_going());
}

TEST(NothingWorksTest, WhatWorkedInAnEarlierRunCounts) {
    HeadCase before(spec(), 20);
    before.begin_with({make_node("n0", 1)});
    before.trial_ends(0);
    HeadCase after(spec(), 20);
    for (const Fact& fact : before.facts) {
        ASSERT_TRUE(after.head.restore(fact, {}).ok());
    }
    after.begin_with({make_node("n0", 1)});

    fail_all(after, 15);

    EXPECT_TRUE(after.head.is_going());
}

TEST(FailureTextTest, AFailureCarriesTheLastLineOfTheOutput) {
    ExperimentSpec retrying = spec();
    retrying.failures.max_failures = 1;
    HeadCase test(retrying, 1);
    test.begin_with({make_node("n0", 1)});

    end_on(test, kNode0, kExit1, "one\nValueError: no\n");
    EXPECT_THAT(
        last_warning(test),
        HasSubstr("trial 00000 failed (exit code 1; it last wrote: ValueError: no) and runs again")
    );
    end_on(test, kNode0, kExit1, "one\n" + std::string(300, 'x') + "ü\n");

    const std::string reason = test.kept<TrialEnded>().front().reason;
    EXPECT_THAT(reason, HasSubstr("exit code 1; it last wrote: xxx"));
    EXPECT_LT(reason.size(), 200U);
    EXPECT_THAT(reason, Not(HasSubstr("ü")));
}

}  // namespace
}  // namespace muster
