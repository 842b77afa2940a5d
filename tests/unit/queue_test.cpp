// SPDX-License-Identifier: Apache-2.0
//
// Who starts next: order, backfill, the concurrency limit, and nodes held for who waited too long.

#include "placement/queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/placement_case.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::bundle;
using ::testing::ElementsAre;
using testing::group;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TimePoint at(Duration since_start) {
    return TimePoint{since_start};
}

/// A cluster and a queue that is served after every event.
class Served {
  public:
    Served(
        const std::vector<std::string>& nodes,
        std::vector<PlacementGroupSpec> shapes,
        QueueOptions options = {},
        ClusterOptions cluster_options = {}
    )
        : cluster(std::move(cluster_options)),
          queue(std::move(shapes), options) {
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            const ResourceSet resources = parse_node_resources(nodes[i]).value();
            cluster.add_node(NodeId{i}, logical_node("node" + std::to_string(i), resources));
        }
    }

    /// Trials that start now, in their order.
    std::vector<std::uint32_t> serve(TimePoint now) {
        std::vector<std::uint32_t> started;
        while (const auto start = queue.next(cluster, now)) {
            started.push_back(start->trial.value);
        }
        return started;
    }

    std::vector<std::uint32_t> push(std::uint32_t trial, std::uint32_t shape, TimePoint now) {
        queue.push(TrialId{trial}, shape, now);
        return serve(now);
    }

    std::vector<std::uint32_t> end(std::uint32_t trial, TimePoint now) {
        queue.ended(cluster, TrialId{trial});
        return serve(now);
    }

    WaitExplanation why(std::uint32_t trial, TimePoint now) const {
        return queue.why(TrialId{trial}, cluster, now);
    }

    Cluster cluster;
    PlacementQueue queue;
};

constexpr std::uint32_t kSmall = 0;
constexpr std::uint32_t kLarge = 1;

std::vector<PlacementGroupSpec> small_and_large() {
    return {group({"cpu=1"}), group({"cpu=4"})};
}

TEST(QueueTest, StartsInTheOrderInWhichTrialsCame) {
    Served served({"cpu=2"}, {group({"cpu=1"})});
    for (std::uint32_t trial = 0; trial < 5; ++trial) {
        served.queue.push(TrialId{trial}, 0, at(0s));
    }

    EXPECT_THAT(served.serve(at(0s)), ElementsAre(0U, 1U));
    EXPECT_THAT(served.end(1, at(1s)), ElementsAre(2U));
    EXPECT_THAT(served.end(0, at(2s)), ElementsAre(3U));
}

TEST(QueueTest, KeepsTheOrderAcrossDifferentRequests) {
    Served served({"cpu=4"}, {group({"cpu=1"}), group({"cpu=2"})});
    served.queue.push(TrialId{0}, 1, at(0s));
    served.queue.push(TrialId{1}, 0, at(0s));
    served.queue.push(TrialId{2}, 1, at(0s));
    served.queue.push(TrialId{3}, 0, at(0s));

    EXPECT_THAT(served.serve(at(0s)), ElementsAre(0U, 1U, 3U));
}

TEST(QueueTest, WhatFitsGoesAheadOfWhatDoesNot) {
    Served served({"cpu=4"}, small_and_large());
    EXPECT_THAT(served.push(0, kSmall, at(0s)), ElementsAre(0U));

    EXPECT_THAT(served.push(1, kLarge, at(0s)), IsEmpty());
    EXPECT_THAT(served.push(2, kSmall, at(0s)), ElementsAre(2U));
}

TEST(QueueTest, ARetriedTrialGoesToTheEnd) {
    Served served({"cpu=1"}, {group({"cpu=1"})});
    served.push(0, 0, at(0s));
    served.push(1, 0, at(0s));
    served.queue.ended(served.cluster, TrialId{0});
    served.queue.push(TrialId{0}, 0, at(1s));

    EXPECT_THAT(served.serve(at(1s)), ElementsAre(1U));
    EXPECT_THAT(served.end(1, at(2s)), ElementsAre(0U));
}

TEST(QueueTest, ATrialThatIsTakenOutNeverStarts) {
    Served served({"cpu=1"}, {group({"cpu=1"})});
    served.push(0, 0, at(0s));
    for (std::uint32_t trial = 1; trial < 1000; ++trial) {
        served.queue.push(TrialId{trial}, 0, at(0s));
    }
    for (std::uint32_t trial = 1; trial < 999; ++trial) {
        EXPECT_TRUE(served.queue.remove(TrialId{trial}));
    }
    EXPECT_FALSE(served.queue.remove(TrialId{5}));
    EXPECT_FALSE(served.queue.remove(TrialId{5000}));

    EXPECT_EQ(served.queue.waiting(), 1U);
    EXPECT_THAT(served.end(0, at(1s)), ElementsAre(999U));
    EXPECT_EQ(served.queue.waiting(), 0U);
}

TEST(QueueTest, NoMoreThanTheLimitRunAtOnce) {
    Served served({"gpu=32,cpu=1"}, {group({"gpu=1"})}, {.max_concurrent_trials = 10});
    for (std::uint32_t trial = 0; trial < 20; ++trial) {
        served.queue.push(TrialId{trial}, 0, at(0s));
    }

    EXPECT_EQ(served.serve(at(0s)).size(), 10U);
    EXPECT_EQ(served.queue.running(), 10U);
    EXPECT_THAT(served.end(3, at(1s)), ElementsAre(10U));
}

TEST(QueueTest, TheLimitDoesNotMakeMoreFit) {
    Served served({"gpu=32,cpu=1"}, {group({"gpu=16"})}, {.max_concurrent_trials = 10});
    for (std::uint32_t trial = 0; trial < 20; ++trial) {
        served.queue.push(TrialId{trial}, 0, at(0s));
    }

    EXPECT_EQ(served.serve(at(0s)).size(), 2U);
}

TEST(QueueTest, ANewNodeStartsWhatWaited) {
    Served served({"cpu=2"}, small_and_large());
    EXPECT_THAT(served.push(0, kLarge, at(0s)), IsEmpty());

    served.cluster.add_node(NodeId{1}, logical_node("new", bundle("cpu=4")));

    EXPECT_THAT(served.serve(at(1s)), ElementsAre(0U));
}

TEST(QueueTest, TellsWhichRequestsWait) {
    Served served({"cpu=1"}, small_and_large());
    served.push(0, kSmall, at(0s));
    served.push(1, kLarge, at(0s));

    EXPECT_THAT(served.queue.waiting_shapes(), ElementsAre(kLarge));
    EXPECT_EQ(served.queue.first_waiting(kLarge), TrialId{1});
    EXPECT_EQ(served.queue.first_waiting(kSmall), std::nullopt);
    EXPECT_TRUE(served.queue.is_waiting(TrialId{1}));
    EXPECT_FALSE(served.queue.is_waiting(TrialId{0}));
}

// --- starvation ---

/// Node 0 runs small trials 0 … 3 and trial 4, a large one, waits since 0 s.
Served starving(QueueOptions options = {}) {
    Served served({"cpu=4"}, small_and_large(), options);
    for (std::uint32_t trial = 0; trial < 4; ++trial) {
        served.push(trial, kSmall, at(0s));
    }
    served.push(4, kLarge, at(0s));
    return served;
}

TEST(StarvationTest, BeforeTheBoundSmallTrialsGoAhead) {
    Served served = starving();
    served.queue.push(TrialId{5}, kSmall, at(1s));

    EXPECT_THAT(served.end(0, at(59s)), ElementsAre(5U));
}

TEST(StarvationTest, PastTheBoundTheNodeDrainsForWhoWaits) {
    Served served = starving();
    for (std::uint32_t trial = 5; trial < 10; ++trial) {
        served.queue.push(TrialId{trial}, kSmall, at(1s));
    }

    EXPECT_THAT(served.end(0, at(60s)), IsEmpty());
    EXPECT_THAT(served.end(1, at(61s)), IsEmpty());
    EXPECT_THAT(served.end(2, at(62s)), IsEmpty());
    EXPECT_THAT(served.end(3, at(63s)), ElementsAre(4U));
    EXPECT_THAT(served.end(4, at(64s)), ElementsAre(5U, 6U, 7U, 8U));
}

TEST(StarvationTest, TheBoundHoldsEvenWhenNothingEndedSinceItWasRefused) {
    Served served({"cpu=4"}, small_and_large());
    served.push(0, kSmall, at(0s));
    served.push(1, kLarge, at(0s));

    EXPECT_THAT(served.push(2, kSmall, at(61s)), IsEmpty());
    EXPECT_THAT(served.end(0, at(62s)), ElementsAre(1U));
}

TEST(StarvationTest, WhatDoesNotTouchTheHeldNodesGoesAhead) {
    Served served({"cpu=4", "cpu=2"}, small_and_large());
    for (std::uint32_t trial = 0; trial < 6; ++trial) {
        served.push(trial, kSmall, at(0s));
    }
    served.push(6, kLarge, at(0s));
    served.queue.push(TrialId{7}, kSmall, at(0s));
    served.queue.push(TrialId{8}, kSmall, at(0s));
    std::vector<std::uint32_t> on_small_node;
    std::vector<std::uint32_t> on_large_node;
    for (std::uint32_t trial = 0; trial < 6; ++trial) {
        const auto holders = served.cluster.holders(NodeId{1});
        const bool small =
            std::find(holders.begin(), holders.end(), TrialId{trial}) != holders.end();
        (small ? on_small_node : on_large_node).push_back(trial);
    }
    ASSERT_EQ(on_small_node.size(), 2U);

    EXPECT_THAT(served.end(on_large_node[0], at(70s)), IsEmpty());
    EXPECT_THAT(served.end(on_small_node[0], at(71s)), ElementsAre(7U));
}

TEST(StarvationTest, WhatEndsBeforeTheNodesAreNeededGoesAhead) {
    // Trial 0 may run until 100 s, and trial 1 until 150 s; trial 2 needs both gone.
    Served served({"cpu=2"}, {group({"cpu=1"}), group({"cpu=2"})}, {.time_limit = 100s});
    served.push(0, 0, at(0s));
    served.push(1, 0, at(50s));
    served.push(2, 1, at(51s));
    served.queue.push(TrialId{3}, 0, at(52s));

    // From 111 s on it would end at 211 s, after 150 s: not ahead.
    EXPECT_THAT(served.end(0, at(111s)), IsEmpty());
    EXPECT_THAT(served.end(1, at(112s)), ElementsAre(2U));
}

TEST(StarvationTest, WhatIsOverWhenTheNodesAreNeededGoesAhead) {
    Served served(
        {"cpu=2"},
        {group({"cpu=1"}), group({"cpu=2"})},
        {.starvation_bound = 0s, .time_limit = 100s}
    );
    served.push(0, 0, at(0s));
    served.push(1, 1, at(0s));

    // Both small ones end by 100 s, when the held node is needed; a third would not.
    EXPECT_THAT(served.push(2, 0, at(0s)), ElementsAre(2U));
    EXPECT_THAT(served.push(3, 0, at(1s)), IsEmpty());
    EXPECT_THAT(served.end(2, at(2s)), IsEmpty());
    EXPECT_THAT(served.end(0, at(3s)), ElementsAre(1U));
}

TEST(StarvationTest, TheNodesThatFreeSoonestAreHeld) {
    Served served({"cpu=4", "cpu=4"}, small_and_large());
    for (std::uint32_t trial = 0; trial < 8; ++trial) {
        served.push(trial, kSmall, at(0s));
    }
    served.push(8, kLarge, at(0s));
    served.queue.push(TrialId{9}, kSmall, at(0s));
    for (const TrialId trial : served.cluster.holders(NodeId{1})) {
        served.queue.expect_end(trial, at(70s));
    }

    const TrialId on_held = served.cluster.holders(NodeId{1}).front();
    const TrialId on_other = served.cluster.holders(NodeId{0}).front();
    EXPECT_THAT(served.end(on_held.value, at(61s)), IsEmpty());
    EXPECT_THAT(served.end(on_other.value, at(62s)), ElementsAre(9U));
}

TEST(StarvationTest, NothingIsHeldWhileAllAskForTheSame) {
    Served served({"cpu=2"}, {group({"cpu=1"})});
    for (std::uint32_t trial = 0; trial < 6; ++trial) {
        served.queue.push(TrialId{trial}, 0, at(0s));
    }
    served.serve(at(0s));

    EXPECT_THAT(served.end(0, at(100s)), ElementsAre(2U));
    EXPECT_THAT(served.end(1, at(101s)), ElementsAre(3U));
}

TEST(StarvationTest, TheHoldEndsWithItsTrial) {
    Served served = starving();
    served.queue.push(TrialId{5}, kSmall, at(1s));
    EXPECT_THAT(served.end(0, at(60s)), IsEmpty());

    served.queue.remove(TrialId{4});

    EXPECT_THAT(served.serve(at(61s)), ElementsAre(5U));
}

TEST(StarvationTest, ALostHeldNodeIsReplaced) {
    Served served({"cpu=4", "cpu=4"}, small_and_large());
    for (std::uint32_t trial = 0; trial < 8; ++trial) {
        served.push(trial, kSmall, at(0s));
    }
    served.push(8, kLarge, at(0s));
    served.queue.push(TrialId{9}, kSmall, at(0s));
    EXPECT_THAT(served.end(0, at(61s)), IsEmpty());

    const std::vector<TrialId> lost = served.cluster.holders(NodeId{0});
    served.cluster.remove_node(NodeId{0});
    for (const TrialId trial : lost) {
        served.queue.ended(served.cluster, trial);
    }

    EXPECT_THAT(served.serve(at(62s)), IsEmpty());
    EXPECT_THAT(served.end(4, at(63s)), IsEmpty());
    EXPECT_THAT(served.end(5, at(63s)), IsEmpty());
    EXPECT_THAT(served.end(6, at(63s)), IsEmpty());
    EXPECT_THAT(served.end(7, at(63s)), ElementsAre(8U));
}

TEST(StarvationTest, WhatTheRunSharesIsHeldAsWell) {
    ClusterOptions options;
    options.cluster_resources = {{"licence", Amount::whole(2)}};
    Served served(
        {"cpu=4", "cpu=64"}, {group({"cpu=1,licence=1"}), group({"cpu=4,licence=2"})}, {}, options
    );
    served.push(0, 0, at(0s));
    served.push(1, 0, at(0s));
    served.push(2, 1, at(0s));
    served.queue.push(TrialId{3}, 0, at(0s));

    EXPECT_THAT(served.end(0, at(61s)), IsEmpty());
    EXPECT_THAT(served.end(1, at(62s)), ElementsAre(2U));
}

// --- why ---

TEST(WhyTest, SaysWhatIsAskedWhatIsFreeAndWhoHoldsIt) {
    Served served = starving();

    const WaitExplanation why = served.why(4, at(1s));

    EXPECT_EQ(why.reason, WaitReason::DoesNotFit);
    EXPECT_THAT(
        why.text,
        AllOf(
            HasSubstr("needs {cpu: 4}"),
            HasSubstr("cpu 0 of 4"),
            HasSubstr("node0, held by 00000, 00001, 00002, 00003")
        )
    );
}

TEST(WhyTest, SaysWhoIsBefore) {
    Served served({"cpu=1"}, {group({"cpu=1"})});
    for (std::uint32_t trial = 0; trial < 4; ++trial) {
        served.push(trial, 0, at(0s));
    }

    EXPECT_EQ(served.why(3, at(0s)).reason, WaitReason::BehindOthers);
    EXPECT_THAT(served.why(3, at(0s)).text, HasSubstr("2 trials that ask for the same are before"));
    EXPECT_EQ(served.why(0, at(0s)).reason, WaitReason::NotWaiting);
}

TEST(WhyTest, SaysThatTheLimitIsReached) {
    Served served({"cpu=4"}, {group({"cpu=1"})}, {.max_concurrent_trials = 1});
    served.push(0, 0, at(0s));
    served.push(1, 0, at(0s));

    EXPECT_EQ(served.why(1, at(0s)).reason, WaitReason::ConcurrencyLimit);
    EXPECT_THAT(served.why(1, at(0s)).text, HasSubstr("max_concurrent_trials: 1"));
}

TEST(WhyTest, SaysForWhomNodesAreHeld) {
    Served served = starving();
    served.queue.push(TrialId{5}, kSmall, at(1s));
    served.end(0, at(60s));

    EXPECT_EQ(served.why(5, at(60s)).reason, WaitReason::NodesHeld);
    EXPECT_THAT(served.why(5, at(60s)).text, HasSubstr("held for trial 00004"));
}

TEST(WhyTest, SaysThatLostNodesMadeItInfeasible) {
    Served served({"cpu=4", "cpu=1"}, small_and_large());
    served.push(0, kLarge, at(0s));
    served.push(1, kLarge, at(0s));
    EXPECT_EQ(served.why(1, at(0s)).reason, WaitReason::DoesNotFit);

    served.cluster.remove_node(NodeId{0});
    served.queue.ended(served.cluster, TrialId{0});
    served.serve(at(1s));

    EXPECT_EQ(served.why(1, at(1s)).reason, WaitReason::Infeasible);
    EXPECT_THAT(served.why(1, at(1s)).text, HasSubstr("{cpu: 4}"));
}

// --- properties ---

TEST(QueuePropertyTest, NothingThatFitsWaitsAndEverybodyStarts) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        RandomStream random(seed);
        Served served(
            {"cpu=4,gpu=1", "cpu=8", "cpu=2,gpu=2"},
            {group({"cpu=1"}),
             group({"cpu=8"}),
             group({"gpu=1"}),
             group({"gpu=0.5", "cpu=2"}),
             group({"cpu=2", "cpu=2", "cpu=2"}, PlacementStrategy::StrictSpread)}
        );
        std::vector<std::uint32_t> running;
        Duration now{0};
        std::size_t started = 0;
        for (std::uint32_t trial = 0; trial < 200; ++trial) {
            served.queue.push(TrialId{trial}, static_cast<std::uint32_t>(random.below(5)), at(now));
        }
        while (started < 200 || !running.empty()) {
            for (const std::uint32_t trial : served.serve(at(now))) {
                running.push_back(trial);
                ++started;
            }
            for (const std::uint32_t shape : served.queue.waiting_shapes()) {
                const auto why =
                    served.queue.why(*served.queue.first_waiting(shape), served.cluster, at(now));
                ASSERT_TRUE(
                    why.reason == WaitReason::DoesNotFit || why.reason == WaitReason::NodesHeld
                ) << why.text;
            }
            ASSERT_FALSE(running.empty()) << "seed " << seed << ": nobody runs, some wait";
            const std::size_t which = random.below(running.size());
            served.queue.ended(served.cluster, TrialId{running[which]});
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
            now += 5s;
        }
        EXPECT_TRUE(served.cluster.in_use().is_zero());
    }
}

}  // namespace
}  // namespace muster
