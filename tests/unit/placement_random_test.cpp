// SPDX-License-Identifier: Apache-2.0
//
// Random clusters and groups against a plain model: place() finds room exactly when trying every
// way does, the index prefers the node that a scan over all nodes would, and what is told about
// cores is what changed.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "placement/cluster.hpp"
#include "resources/logical_node.hpp"
#include "support/placement_case.hpp"

namespace muster {
namespace {

using testing::amount;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// What a node has left, with nothing clever about it.
struct PlainNode {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::int64_t tokens = 0;
    std::int64_t nothing = 0;
    std::vector<std::int64_t> devices;
    bool offers_tokens = false;
};

struct PlainCluster {
    std::vector<PlainNode> nodes;

    void change(const Placement& placement, std::int64_t sign) {
        const bool nothing = placement.bundles.size() == 1 && placement.bundles[0].bundle.is_zero();
        for (const BundlePlacement& bundle : placement.bundles) {
            PlainNode& node = nodes[bundle.node.value];
            node.cpu += sign * bundle.bundle.cpu.ten_thousandths();
            node.memory += sign * bundle.bundle.memory_bytes;
            node.tokens += sign * bundle.bundle.custom_amount("token").ten_thousandths();
            node.nothing += nothing ? sign : 0;
            for (const DeviceShare& share : bundle.devices) {
                node.devices[share.device] += sign * share.share.ten_thousandths();
            }
        }
    }

    /// Nothing is below zero, and a whole device was never taken from a shared one.
    bool is_sound() const {
        return std::all_of(nodes.begin(), nodes.end(), [](const PlainNode& node) {
            return node.cpu >= 0 && node.memory >= 0 && node.tokens >= 0 && node.nothing >= 0 &&
                   std::all_of(node.devices.begin(), node.devices.end(), [](std::int64_t left) {
                       return left >= 0 && left <= 10'000;
                   });
        });
    }
};

/// Whether the bundles from `first` on fit on the nodes in some way; `allowed` says on which node
/// a bundle may go, given the nodes of those before.
bool fits_somehow(
    PlainCluster& cluster,
    const std::vector<Bundle>& bundles,
    std::vector<std::uint32_t>& nodes_of,
    const std::function<bool(std::uint32_t)>& allowed
) {
    if (nodes_of.size() == bundles.size()) {
        return true;
    }
    const Bundle& bundle = bundles[nodes_of.size()];
    for (std::uint32_t n = 0; n < cluster.nodes.size(); ++n) {
        PlainNode& node = cluster.nodes[n];
        const PlainNode before = node;
        node.cpu -= bundle.cpu.ten_thousandths();
        node.memory -= bundle.memory_bytes;
        node.tokens -= bundle.custom_amount("token").ten_thousandths();
        node.nothing -= bundles.size() == 1 && bundle.is_zero() ? 1 : 0;
        const bool amounts =
            node.cpu >= 0 && node.memory >= 0 && node.tokens >= 0 && node.nothing >= 0;
        if (amounts && allowed(n)) {
            nodes_of.push_back(n);
            const std::int64_t gpu = bundle.gpu.ten_thousandths();
            if (gpu >= 10'000) {
                // Which of the unshared devices does not matter.
                std::int64_t wanted = bundle.gpu.floor();
                for (std::int64_t& left : node.devices) {
                    const bool take = wanted > 0 && left == 10'000;
                    left = take ? 0 : left;
                    wanted -= take ? 1 : 0;
                }
                if (wanted == 0 && fits_somehow(cluster, bundles, nodes_of, allowed)) {
                    return true;
                }
            } else if (gpu == 0) {
                if (fits_somehow(cluster, bundles, nodes_of, allowed)) {
                    return true;
                }
            } else {
                for (std::int64_t& left : node.devices) {
                    if (left < gpu) {
                        continue;
                    }
                    left -= gpu;
                    if (fits_somehow(cluster, bundles, nodes_of, allowed)) {
                        return true;
                    }
                    left += gpu;
                }
            }
            nodes_of.pop_back();
        }
        node = before;
    }
    return false;
}

bool fits_somehow(PlainCluster cluster, const PlacementGroupSpec& group) {
    std::vector<Bundle> bundles = group.bundles;
    if (bundles.size() > 1) {
        std::erase_if(bundles, [](const Bundle& bundle) { return bundle.is_zero(); });
    }
    // Whole devices first, since a share may need none that is whole.
    std::stable_sort(bundles.begin(), bundles.end(), [](const Bundle& left, const Bundle& right) {
        return left.gpu > right.gpu;
    });
    std::vector<std::uint32_t> nodes_of;
    return fits_somehow(cluster, bundles, nodes_of, [&](std::uint32_t node) {
        switch (group.strategy) {
            case PlacementStrategy::StrictPack:
                return nodes_of.empty() || nodes_of.front() == node;
            case PlacementStrategy::StrictSpread:
                return std::find(nodes_of.begin(), nodes_of.end(), node) == nodes_of.end();
            case PlacementStrategy::Pack:
            case PlacementStrategy::Spread:
                return true;
        }
        return false;
    });
}

class RandomCluster {
  public:
    RandomCluster(std::uint64_t seed, std::size_t nodes, ClusterOptions options)
        : cluster(std::move(options)),
          random(seed) {
        for (std::uint32_t i = 0; i < nodes; ++i) {
            ResourceSet resources{
                .cpu = Amount::whole(pick(1, 8)),
                .gpu = Amount::whole(pick(0, 3)),
                .memory_bytes = pick(0, 8) * kGiB};
            resources.set_custom("token", Amount::whole(pick(0, 2)));
            cluster.add_node(NodeId{i}, logical_node("n", resources));
            plain.nodes.push_back(PlainNode{
                .cpu = resources.cpu.ten_thousandths(),
                .memory = resources.memory_bytes,
                .tokens = resources.custom_amount("token").ten_thousandths(),
                .nothing = resources.cpu.ceil(),
                .devices = std::vector<std::int64_t>(
                    static_cast<std::size_t>(resources.gpu.floor()), 10'000
                ),
                .offers_tokens = !resources.custom_amount("token").is_zero()});
        }
    }

    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
    }

    Bundle bundle() {
        Bundle bundle;
        constexpr std::int64_t kCpus[] = {0, 1, 1, 2, 3, 4};
        bundle.cpu = random.below(5) == 0 ? Amount::ten_thousandths(pick(1, 30) * 1000)
                                          : Amount::whole(kCpus[random.below(6)]);
        if (random.below(3) == 0) {
            bundle.gpu = random.below(2) == 0 ? Amount::whole(pick(1, 2))
                                              : Amount::ten_thousandths(pick(1, 9) * 1000);
        }
        bundle.memory_bytes = random.below(3) == 0 ? pick(1, 6) * kGiB : 0;
        if (random.below(5) == 0) {
            bundle.set_custom("token", Amount::ten_thousandths(pick(1, 4) * 5000));
        }
        return bundle;
    }

    PlacementGroupSpec group(std::size_t most_bundles) {
        PlacementGroupSpec group{
            .bundles = {}, .strategy = static_cast<PlacementStrategy>(random.below(4))};
        const std::size_t count = 1 + random.below(most_bundles);
        const bool equal = random.below(3) == 0;
        while (group.bundles.size() < count) {
            Bundle drawn = equal && !group.bundles.empty() ? group.bundles.back() : bundle();
            if (count == 1 || !drawn.is_zero()) {
                group.bundles.push_back(drawn);
            }
        }
        return group;
    }

    void start(const Placement& placement) {
        plain.change(placement, -1);
        cluster.reserve(TrialId{next}, placement);
        running.emplace(TrialId{next++}, placement);
    }

    void end_one() {
        auto entry = running.begin();
        std::advance(entry, static_cast<std::ptrdiff_t>(random.below(running.size())));
        plain.change(entry->second, 1);
        cluster.release(entry->first);
        running.erase(entry);
    }

    Cluster cluster;
    PlainCluster plain;
    std::map<TrialId, Placement> running;
    RandomStream random;
    std::uint32_t next = 0;
};

void expect_strategy_kept(
    const PlacementGroupSpec& group,
    const Placement& placement,
    const PlainCluster& before
) {
    std::set<NodeId> nodes;
    for (const BundlePlacement& bundle : placement.bundles) {
        nodes.insert(bundle.node);
    }
    PlacementGroupSpec strict = group;
    if (group.strategy == PlacementStrategy::StrictPack) {
        EXPECT_EQ(nodes.size(), 1U);
    } else if (group.strategy == PlacementStrategy::StrictSpread) {
        EXPECT_EQ(nodes.size(), group.bundles.size());
    } else if (group.strategy == PlacementStrategy::Pack) {
        strict.strategy = PlacementStrategy::StrictPack;
        EXPECT_EQ(nodes.size() == 1, fits_somehow(before, strict));
    } else {
        strict.strategy = PlacementStrategy::StrictSpread;
        EXPECT_EQ(nodes.size() == group.bundles.size(), fits_somehow(before, strict));
    }
}

TEST(RandomPlacementTest, FindsRoomExactlyWhenTryingEveryWayDoes) {
    int found = 0;
    int full = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const NodeChoice choice = seed % 3 == 0 ? NodeChoice::Balance : NodeChoice::Tightest;
        RandomCluster random(seed, 1 + seed % 4, {.node_choice = choice});
        for (int step = 0; step < 20; ++step) {
            const PlacementGroupSpec group = random.group(4);
            const bool fits = fits_somehow(random.plain, group);
            const std::optional<Placement> placement = random.cluster.place(group);
            ASSERT_EQ(placement.has_value(), fits)
                << "seed " << seed << " step " << step << ": " << to_string(group);
            ++(fits ? found : full);
            if (placement) {
                expect_strategy_kept(group, *placement, random.plain);
                random.start(*placement);
                ASSERT_TRUE(random.plain.is_sound()) << "seed " << seed << " step " << step;
            } else if (!random.running.empty()) {
                random.end_one();
            }
        }
    }
    EXPECT_GT(found, 1000);
    EXPECT_GT(full, 1000);
}

TEST(RandomPlacementTest, IsFeasibleExactlyWhenTheIdleClusterHasRoom) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        RandomCluster random(seed + 1000, 1 + seed % 4, {});
        const PlainCluster idle = random.plain;
        for (int step = 0; step < 10; ++step) {
            const PlacementGroupSpec group = random.group(4);
            const Status feasible = random.cluster.feasible(group);
            ASSERT_EQ(feasible.ok(), fits_somehow(idle, group))
                << "seed " << seed + 1000 << " step " << step << ": " << to_string(group);
            if (const auto placement = random.cluster.place(group)) {
                random.start(*placement);
            }
        }
    }
}

/// The preferred node for one bundle, by looking at all of them; the number of nodes when none
/// serves. This is the documented order, written out.
std::size_t scan(const PlainCluster& cluster, const Bundle& bundle, NodeChoice choice) {
    const std::int64_t sign = choice == NodeChoice::Tightest ? 1 : -1;
    const std::int64_t gpu = bundle.gpu.ten_thousandths();
    using Rank = std::array<std::int64_t, 6>;
    std::optional<Rank> best;
    std::size_t best_node = cluster.nodes.size();
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
        const PlainNode& node = cluster.nodes[i];
        const std::int64_t unshared = std::count(node.devices.begin(), node.devices.end(), 10'000);
        const bool on_shared =
            gpu < 10'000 &&
            std::any_of(node.devices.begin(), node.devices.end(), [&](std::int64_t left) {
                return left < 10'000 && left >= gpu;
            });
        const bool devices =
            gpu >= 10'000 ? unshared >= bundle.gpu.floor() : gpu == 0 || on_shared || unshared > 0;
        if (!devices || node.cpu < bundle.cpu.ten_thousandths() ||
            node.memory < bundle.memory_bytes ||
            node.tokens < bundle.custom_amount("token").ten_thousandths() ||
            (bundle.is_zero() && node.nothing < 1)) {
            continue;
        }
        const bool wasted = gpu == 0 && !node.devices.empty();
        const bool opens = sign > 0 && gpu > 0 && gpu < 10'000 && !on_shared;
        const std::int64_t by_devices = sign > 0 || gpu > 0 ? sign * unshared : 0;
        const Rank rank{
            opens ? 1 : 0,
            wasted ? 1 : 0,
            by_devices,
            node.offers_tokens ? 1 : 0,
            sign * node.cpu,
            sign * node.memory};
        if (!best || rank < *best) {
            best = rank;
            best_node = i;
        }
    }
    return best_node;
}

TEST(RandomPlacementTest, TheIndexPrefersTheNodeThatAScanWould) {
    for (const NodeChoice choice : {NodeChoice::Tightest, NodeChoice::Balance}) {
        RandomCluster random(7, 500, {.node_choice = choice});
        for (int step = 0; step < 6000; ++step) {
            const bool ends = step > 500 && random.random.below(3) == 0;
            if (ends && !random.running.empty()) {
                random.end_one();
                continue;
            }
            const Bundle bundle = random.bundle();
            const PlacementGroupSpec group{.bundles = {bundle}};
            const std::size_t expected = scan(random.plain, bundle, choice);
            const std::optional<Placement> placement = random.cluster.place(group);
            ASSERT_EQ(placement.has_value(), expected < random.plain.nodes.size())
                << "step " << step << ": " << to_string(bundle);
            if (placement) {
                ASSERT_EQ(placement->bundles[0].node.value, expected)
                    << "step " << step << ": " << to_string(bundle);
                random.start(*placement);
            } else if (!random.running.empty()) {
                random.end_one();
            }
        }
    }
}

using Masks = std::map<BundleRef, std::vector<std::uint32_t>>;

Masks masks_of(const RandomCluster& random) {
    Masks masks;
    for (const auto& [trial, placement] : random.running) {
        for (std::uint32_t i = 0; i < placement.bundles.size(); ++i) {
            masks[{trial, i}] = random.cluster.cores_of(placement, i);
        }
    }
    return masks;
}

/// Own cores are nobody else's but floating bundles' last resort, and shared ones suffice.
void expect_cores_kept_apart(const RandomCluster& random) {
    std::map<std::uint32_t, std::set<std::uint32_t>> own;
    std::map<std::uint32_t, std::set<std::uint32_t>> shared;
    std::map<std::uint32_t, Amount> fractions;
    for (const auto& [trial, placement] : random.running) {
        for (std::size_t i = 0; i < placement.bundles.size(); ++i) {
            const BundlePlacement& bundle = placement.bundles[i];
            const auto cores = random.cluster.cores_of(placement, i);
            EXPECT_FALSE(cores.empty());
            EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
            if (bundle.bundle.cpu.is_zero()) {
                continue;
            }
            if (bundle.bundle.cpu.is_whole()) {
                EXPECT_EQ(cores.size(), static_cast<std::size_t>(bundle.bundle.cpu.floor()));
                for (const std::uint32_t core : cores) {
                    EXPECT_TRUE(own[bundle.node.value].insert(core).second);
                }
            } else {
                fractions[bundle.node.value] += bundle.bundle.cpu;
                shared[bundle.node.value].insert(cores.begin(), cores.end());
            }
        }
    }
    for (const auto& [node, sum] : fractions) {
        EXPECT_EQ(shared[node].size(), static_cast<std::size_t>(sum.ceil()));
        for (const std::uint32_t core : shared[node]) {
            EXPECT_FALSE(own[node].contains(core));
        }
    }
}

TEST(RandomPlacementTest, TellsOfExactlyTheCoresThatChanged) {
    std::size_t told_in_all = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        RandomCluster random(seed, 3, {});
        for (int step = 0; step < 100; ++step) {
            const Masks before = masks_of(random);
            if (random.random.below(3) == 0 && !random.running.empty()) {
                random.end_one();
            } else if (const auto placement = random.cluster.place(random.group(3))) {
                random.start(*placement);
            }
            std::vector<BundleRef> changed;
            for (const auto& [ref, cores] : masks_of(random)) {
                const auto old = before.find(ref);
                if (old != before.end() && old->second != cores) {
                    changed.push_back(ref);
                }
            }
            const std::vector<BundleRef> told = random.cluster.take_remasked();
            ASSERT_EQ(told, changed) << "seed " << seed << " step " << step;
            told_in_all += told.size();
            expect_cores_kept_apart(random);
            ASSERT_FALSE(HasFailure()) << "seed " << seed << " step " << step;
        }
    }
    EXPECT_GT(told_in_all, 100U);
}

TEST(RandomPlacementTest, GivesBackExactlyWhatWasTaken) {
    RandomCluster random(3, 20, {});
    for (int step = 0; step < 2000; ++step) {
        if (const auto placement = random.cluster.place(random.group(4))) {
            random.start(*placement);
        } else if (!random.running.empty()) {
            random.end_one();
        }
    }
    while (!random.running.empty()) {
        random.end_one();
    }

    EXPECT_TRUE(random.cluster.in_use().is_zero());
    for (const NodeId node : random.cluster.nodes()) {
        EXPECT_EQ(random.cluster.free(node), random.cluster.capacity(node));
    }
}

}  // namespace
}  // namespace muster
