// SPDX-License-Identifier: Apache-2.0
//
// The transport's suite over the in-process form, each rank a thread.

#include <atomic>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/transport_suite.hpp"
#include "transport/in_process_network.hpp"

namespace muster {
namespace {

class TransportSuite : public testing::TestWithParam<std::tuple<Scenario, std::uint32_t>> {};

TEST_P(TransportSuite, HoldsInOneProcess) {
    const auto& [scenario, ranks] = GetParam();
    InProcessNetwork network(ranks);
    std::vector<std::atomic<bool>> dead(ranks);
    std::vector<std::string> problems(ranks);

    std::vector<std::thread> threads;
    for (std::uint32_t number = 0; number < ranks; ++number) {
        const Scenario& part = scenario;
        threads.emplace_back([&network, &dead, &problems, &part, number] {
            Rank rank(
                network.endpoint(number),
                {[&](std::uint32_t victim) {
                     network.break_endpoint(victim);
                     dead[victim] = true;
                     dead[victim].notify_all();
                 },
                 [&dead, number] { dead[number].wait(false); },
                 [&dead, number] { return dead[number].load(); }}
            );
            problems[number] = rank.play(part);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }

    for (const std::string& problem : problems) {
        EXPECT_EQ(problem, "");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Ranks,
    TransportSuite,
    testing::Combine(testing::ValuesIn(transport_scenarios()), testing::Values(1U, 2U, 4U)),
    [](const auto& test) {
        return std::get<0>(test.param).name + "_" + std::to_string(std::get<1>(test.param));
    }
);

}  // namespace
}  // namespace muster
