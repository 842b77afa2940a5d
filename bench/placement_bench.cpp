// SPDX-License-Identifier: Apache-2.0
//
// placement_bench - what placing a bundle costs on a large cluster, beside a plain scan over all
// nodes in the same run; and what an event costs the queue, however many trials wait.
//
//   placement_bench [nodes]                             (10,000 without arguments)
//
// Each figure is a median, with the 99th percentile and the median absolute deviation (MAD).

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "placement/cluster.hpp"
#include "placement/queue.hpp"
#include "resources/logical_node.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kCores = 64;
constexpr std::int64_t kDevices = 8;

double microseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Summary {
    double median = 0;
    double p99 = 0;
    double mad = 0;
};

Summary summarise(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    Summary summary{.median = values[values.size() / 2], .p99 = values[values.size() * 99 / 100]};
    for (double& value : values) {
        value = std::abs(value - summary.median);
    }
    std::sort(values.begin(), values.end());
    summary.mad = values[values.size() / 2];
    return summary;
}

/// What a scan looks at: as compact as can be.
struct ScanNode {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::int32_t devices = 0;
    std::int32_t shared_room = 0;
};

/// The tightest node for one bundle, by looking at every node.
std::size_t scan(const std::vector<ScanNode>& nodes, const Bundle& bundle) {
    const std::int64_t cpu = bundle.cpu.ten_thousandths();
    const std::int64_t gpu = bundle.gpu.ten_thousandths();
    const auto whole = static_cast<std::int32_t>(gpu / 10'000);
    std::size_t best = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const ScanNode& node = nodes[i];
        if (node.cpu < cpu || node.memory < bundle.memory_bytes || node.devices < whole ||
            (gpu > 0 && gpu < 10'000 && node.shared_room < gpu && node.devices == 0)) {
            continue;
        }
        if (best == nodes.size() || node.devices < nodes[best].devices ||
            (node.devices == nodes[best].devices && node.cpu < nodes[best].cpu)) {
            best = i;
        }
    }
    return best;
}

struct Mix {
    const char* name;
    std::vector<PlacementGroupSpec> shapes;
};

PlacementGroupSpec group(
    std::size_t count,
    const Bundle& bundle,
    PlacementStrategy strategy = PlacementStrategy::Pack
) {
    return {.bundles = std::vector<Bundle>(count, bundle), .strategy = strategy};
}

Bundle bundle(std::int64_t cpu, double gpu, std::int64_t memory_gib = 0) {
    return {
        .cpu = Amount::whole(cpu),
        .gpu = Amount::from_real(gpu).value(),
        .memory_bytes = memory_gib * kGiB};
}

std::vector<Mix> mixes(RandomStream& random) {
    std::vector<PlacementGroupSpec> single;
    for (int i = 0; i < 200; ++i) {
        const auto cpu = static_cast<std::int64_t>(random.below(17));
        const double gpus[] = {0, 0, 1, 1, 2, 4, 8, 0.5, 0.25};
        const auto memory = static_cast<std::int64_t>(random.below(3) == 0 ? random.below(256) : 0);
        single.push_back(
            group(1, bundle(std::max<std::int64_t>(cpu, 1), gpus[random.below(9)], memory))
        );
    }
    PlacementGroupSpec trainer = group(5, bundle(4, 1));
    trainer.bundles[0] = bundle(2, 0);
    return {
        {"single, any shape", single},
        {"single {cpu: 1}", {group(1, bundle(1, 0))}},
        {"single {cpu: 8, gpu: 1}", {group(1, bundle(8, 1))}},
        {"single, memory scarce", {group(1, bundle(1, 1, 250))}},
        {"8 x {gpu: 1} PACK", {group(8, bundle(4, 1))}},
        {"trainer and 4 workers PACK", {trainer}},
        {"16 x {gpu: 4} STRICT_SPREAD", {group(16, bundle(8, 4), PlacementStrategy::StrictSpread)}},
        {"16 x {gpu: 1} SPREAD", {group(16, bundle(4, 1), PlacementStrategy::Spread)}}};
}

/// Takes a random part of the node, as one trial that never ends.
void fill(Cluster& cluster, RandomStream& random, std::uint32_t node, ScanNode& left) {
    BundlePlacement held;
    held.node = NodeId{node};
    const auto cores = static_cast<std::uint32_t>(random.below(kCores + 1));
    const auto devices = static_cast<std::uint32_t>(random.below(kDevices + 1));
    held.bundle = bundle(cores, devices, static_cast<std::int64_t>(random.below(513)));
    for (std::uint32_t core = 0; core < cores; ++core) {
        held.cores.push_back(core);
    }
    for (std::uint32_t device = 0; device < devices; ++device) {
        held.devices.push_back({device, Amount::whole(1)});
    }
    cluster.reserve(TrialId{node}, Placement{{held}});
    left.cpu -= held.bundle.cpu.ten_thousandths();
    left.memory -= held.bundle.memory_bytes;
    left.devices -= static_cast<std::int32_t>(devices);
}

NodeInventory large_node(std::uint32_t number) {
    NodeInventory node = logical_node(
        "node" + std::to_string(number),
        {.cpu = Amount::whole(kCores), .gpu = Amount::whole(kDevices), .memory_bytes = 512 * kGiB}
    );
    for (std::size_t core = kCores / 2; core < kCores; ++core) {
        node.cores[core].numa_node = 1;
    }
    for (std::size_t device = kDevices / 2; device < kDevices; ++device) {
        node.devices[device].numa_node = 1;
    }
    return node;
}

/// A cluster filled at random, and the same for the scan.
struct FilledCluster {
    FilledCluster(std::size_t nodes, RandomStream& random)
        : plain(nodes, {kCores * 10'000, 512 * kGiB, kDevices, 0}),
          next_trial(static_cast<std::uint32_t>(nodes)) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
            cluster.add_node(NodeId{node}, large_node(node));
            fill(cluster, random, node, plain[node]);
        }
    }

    Cluster cluster;
    std::vector<ScanNode> plain;
    std::uint32_t next_trial;
};

struct MixFigures {
    // Microseconds a bundle.
    std::vector<double> place;
    std::vector<double> scan;
    std::vector<double> reserve;
    std::size_t sum_of_found = 0;
};

constexpr int kRounds = 20'000;

MixFigures bench_mix(FilledCluster& filled, const Mix& mix, RandomStream& random) {
    // In bundles; few enough that the cluster stays as full as it was made.
    constexpr std::size_t kMostRunning = 1000;
    MixFigures figures;
    std::deque<TrialId> running;
    for (int i = -kRounds / 20; i < kRounds; ++i) {
        const PlacementGroupSpec& shape = mix.shapes[random.below(mix.shapes.size())];
        const std::size_t bundles = shape.bundles.size();
        const Clock::time_point start = Clock::now();
        const std::optional<Placement> placement = filled.cluster.place(shape);
        const double place = microseconds_since(start) / static_cast<double>(bundles);
        if (i >= 0) {
            figures.place.push_back(place);
        }
        if (i % 20 == 0) {
            const Clock::time_point scan_start = Clock::now();
            figures.sum_of_found += scan(filled.plain, shape.bundles.back());
            figures.scan.push_back(microseconds_since(scan_start));
        }
        if (placement) {
            const TrialId trial{filled.next_trial++};
            const Clock::time_point reserve_start = Clock::now();
            filled.cluster.reserve(trial, *placement);
            const double reserve = microseconds_since(reserve_start);
            figures.reserve.push_back(reserve / static_cast<double>(bundles));
            running.push_back(trial);
        }
        if (running.size() * bundles > kMostRunning) {
            filled.cluster.release(running.front());
            running.pop_front();
        }
    }
    for (const TrialId trial : running) {
        filled.cluster.release(trial);
    }
    return figures;
}

void bench_place(std::size_t nodes) {
    RandomStream random(1);
    FilledCluster filled(nodes, random);
    std::size_t sum_of_found = 0;
    for (const Mix& mix : mixes(random)) {
        MixFigures figures = bench_mix(filled, mix, random);
        const double fit = 100.0 * static_cast<double>(figures.reserve.size()) / (kRounds * 1.05);
        const Summary place = summarise(std::move(figures.place));
        const Summary reserve = summarise(std::move(figures.reserve));
        const double scan_us = summarise(std::move(figures.scan)).median;
        std::printf(
            "%-28s %7zu %6.1f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n",
            mix.name,
            nodes,
            fit,
            place.median,
            place.p99,
            place.mad,
            reserve.median,
            scan_us,
            place.median / scan_us
        );
        sum_of_found += figures.sum_of_found;
    }
    // Printed so that the scan is not optimised away.
    std::printf("(sum of the nodes that the scans found: %zu)\n\n", sum_of_found);
}

void bench_queue(std::size_t waiting) {
    RandomStream random(2);
    Cluster cluster;
    for (std::uint32_t node = 0; node < 16; ++node) {
        cluster.add_node(NodeId{node}, large_node(node));
    }
    PlacementQueue queue(
        {group(1, bundle(1, 0)),
         group(1, bundle(4, 1)),
         group(1, bundle(64, 0)),
         group(4, bundle(8, 1), PlacementStrategy::StrictSpread)},
        {}
    );
    TimePoint now;
    std::uint32_t next_trial = 0;
    std::vector<TrialId> running;
    const auto push = [&] {
        queue.push(TrialId{next_trial++}, static_cast<std::uint32_t>(random.below(4)), now);
    };
    const auto serve = [&] {
        while (const std::optional<QueueStart> start = queue.next(cluster, now)) {
            running.push_back(start->trial);
        }
    };
    while (queue.waiting() < waiting) {
        push();
    }
    serve();
    std::vector<double> event_us;
    constexpr int kEvents = 20'000;
    for (int i = 0; i < kEvents; ++i) {
        const std::size_t which = random.below(running.size());
        const TrialId ended = running[which];
        running[which] = running.back();
        running.pop_back();
        now = now + std::chrono::milliseconds{1};
        const Clock::time_point start = Clock::now();
        queue.ended(cluster, ended);
        serve();
        event_us.push_back(microseconds_since(start));
        push();
    }
    const Summary event = summarise(event_us);
    std::printf(
        "%-28s %7zu %8.2f %8.2f %8.2f\n",
        "queue: an end and its starts",
        waiting,
        event.median,
        event.p99,
        event.mad
    );
}

int run(int argc, char** argv) {
    const std::size_t nodes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000;
    std::printf(
        "%-28s %7s %6s %8s %8s %8s %8s %8s %8s\n",
        "microseconds a bundle",
        "nodes",
        "fit %",
        "median",
        "p99",
        "MAD",
        "reserve",
        "scan",
        "ratio"
    );
    bench_place(nodes);
    std::printf(
        "%-28s %7s %8s %8s %8s\n", "microseconds an event", "waiting", "median", "p99", "MAD"
    );
    for (const std::size_t waiting : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
        bench_queue(waiting);
    }
    return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    return muster::run(argc, argv);
}
