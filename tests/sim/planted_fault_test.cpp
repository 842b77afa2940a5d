// SPDX-License-Identifier: Apache-2.0
//
// The simulation is worth what it catches: each of these mistakes, planted where it could be made,
// must break a promise within 2,000 seeds.

#include "base/planted_fault.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulation.hpp"

#ifdef MUSTER_PLANTED_FAULTS

namespace muster {
namespace {

constexpr std::uint64_t kSeeds = 2000;

struct Planting {
    PlantedFault fault;
    const char* name;
};

/// Plants a fault for as long as it lives.
class Planted {
  public:
    explicit Planted(PlantedFault fault) { planted_fault = fault; }
    ~Planted() { planted_fault = PlantedFault::None; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
};

class PlantedFaultTest : public testing::TestWithParam<Planting> {};

TEST_P(PlantedFaultTest, IsCaught) {
    const Planted planted(GetParam().fault);

    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const SimulationResult result = Simulation(random_scenario(seed)).run();
        if (result.violation) {
            RecordProperty("seed", std::to_string(seed));
            RecordProperty("violation", *result.violation);
            return;
        }
    }

    FAIL() << "no promise was broken in " << kSeeds << " seeds";
}

const std::vector<Planting> kPlantings{
    {PlantedFault::ResourcesNotReleased, "ResourcesNotReleased"},
    {PlantedFault::RequeueForgotten, "RequeueForgotten"},
    {PlantedFault::StaleEndedAccepted, "StaleEndedAccepted"},
    {PlantedFault::DoubleStart, "DoubleStart"},
    {PlantedFault::LostNodeIsFailure, "LostNodeIsFailure"},
    {PlantedFault::StopIgnored, "StopIgnored"},
    {PlantedFault::ResultDropped, "ResultDropped"},
    {PlantedFault::BackfillLost, "BackfillLost"},
    {PlantedFault::DeviceShareIgnored, "DeviceShareIgnored"},
    {PlantedFault::RemaskForgotten, "RemaskForgotten"},
    {PlantedFault::DurabilityIgnored, "DurabilityIgnored"},
    {PlantedFault::OneTooMany, "OneTooMany"},
    {PlantedFault::LimitIgnored, "LimitIgnored"},
    {PlantedFault::HeldReportLost, "HeldReportLost"},
    {PlantedFault::LeaseIgnored, "LeaseIgnored"},
    {PlantedFault::CheckpointSafeTooEarly, "CheckpointSafeTooEarly"},
    {PlantedFault::CheckpointForgotten, "CheckpointForgotten"},
    {PlantedFault::CheckpointRemovedTooEarly, "CheckpointRemovedTooEarly"},
    {PlantedFault::EndIgnored, "EndIgnored"},
    {PlantedFault::WarningForgotten, "WarningForgotten"},
};

INSTANTIATE_TEST_SUITE_P(
    Each,
    PlantedFaultTest,
    testing::ValuesIn(kPlantings),
    [](const testing::TestParamInfo<Planting>& planting) { return planting.param.name; }
);

}  // namespace
}  // namespace muster

#endif
