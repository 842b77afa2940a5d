// SPDX-License-Identifier: Apache-2.0

#include "probe/format_nodes.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

NodeInventory gpu_node() {
    return NodeInventory{
        .name = "gpu01",
        .cpu = Amount::whole(3),
        .cores =
            {Core{.processing_units = {0, 4}, .numa_node = 0},
             Core{.processing_units = {1, 5}, .numa_node = 0},
             Core{.processing_units = {2, 6}, .numa_node = 1}},
        .devices =
            {Device{.label = "0", .model = "NVIDIA H200"},
             Device{.label = "1", .numa_node = 1, .model = "NVIDIA H200"}},
        .memory_bytes = std::int64_t{64} << 30,
        .custom = {{"nvme", Amount::whole(4)}}};
}

NodeInventory logical_node() {
    return NodeInventory{
        .name = "b",
        .cpu = Amount::ten_thousandths(15'000),
        .devices = {Device{.label = "0", .kind = DeviceKind::Logical}},
        .memory_bytes = std::int64_t{2} << 30};
}

TEST(FormatNodesTest, OneNodeIsOneLine) {
    EXPECT_EQ(
        format_nodes({gpu_node()}, NodesFormat::Text),
        "NODE   CPUS  CORES/NUMA  MEMORY  GPUS                 CUSTOM\n"
        "gpu01  3     2+1         64GiB   2 [0,1] NVIDIA H200  nvme: 4\n"
    );
}

TEST(FormatNodesTest, SeveralNodesAreAddedUp) {
    EXPECT_EQ(
        format_nodes({gpu_node(), logical_node()}, NodesFormat::Text),
        "NODE     CPUS  CORES/NUMA  MEMORY  GPUS                 CUSTOM\n"
        "gpu01    3     2+1         64GiB   2 [0,1] NVIDIA H200  nvme: 4\n"
        "b        1.5   logical     2GiB    1 [0] logical        -\n"
        "2 nodes  4.5               66GiB   3                    nvme: 4\n"
    );
}

TEST(FormatNodesTest, JsonHoldsEverything) {
    EXPECT_EQ(
        format_nodes({logical_node()}, NodesFormat::Json),
        "{\"nodes\": [{\"name\": \"b\", \"cpu\": 1.5, \"gpu\": 1, \"memory_bytes\": 2147483648, "
        "\"custom\": {}, \"cores\": [], \"devices\": [{\"label\": \"0\", \"kind\": \"logical\", "
        "\"model\": \"\", \"numa_node\": 0, \"memory_bytes\": 0}]}], \"total\": {\"cpu\": 1.5, "
        "\"gpu\": 1, \"memory_bytes\": 2147483648, \"custom\": {}}}\n"
    );
}

TEST(FormatNodesTest, NoNodesIsOnlyTheHeading) {
    EXPECT_EQ(
        format_nodes({}, NodesFormat::Text), "NODE  CPUS  CORES/NUMA  MEMORY  GPUS  CUSTOM\n"
    );
}

}  // namespace
}  // namespace muster
