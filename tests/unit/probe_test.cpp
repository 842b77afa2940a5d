// SPDX-License-Identifier: Apache-2.0

#include "probe/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "unit/fake_root.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Environment = std::vector<EnvironmentVariable>;

constexpr auto kTwoSockets = "package:2 numa:4 core:16 pu:2";
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

/// A node with nothing but its topology, and an environment of its own.
ProbeOptions options_for(const FakeRoot& root, const char* topology) {
    return ProbeOptions{
        .name = "n1",
        .root = root.path(),
        .synthetic_topology = topology,
        .environment = Environment{}};
}

NodeInventory probed(const ProbeOptions& options) {
    const Result<NodeInventory> node = probe_node(options);
    EXPECT_TRUE(node.ok()) << node.error().message;
    return node.ok() ? node.value() : NodeInventory{};
}

void write_unified_cgroup(const FakeRoot& root, const char* file, const char* content) {
    root.write("/proc/self/cgroup", "0::/job\n");
    root.write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root.write(std::string("/sys/fs/cgroup/job/") + file, content);
}

TEST(ProbeTest, CoresCarryTheirThreadsAndNumaNodes) {
    const FakeRoot root;

    const NodeInventory node = probed(options_for(root, kTwoSockets));

    EXPECT_EQ(node.name, "n1");
    EXPECT_EQ(node.cpu, Amount::whole(128));
    ASSERT_THAT(node.cores, SizeIs(128));
    EXPECT_EQ(node.cores[0], (Core{.processing_units = {0, 1}, .numa_node = 0}));
    EXPECT_EQ(node.cores[16], (Core{.processing_units = {32, 33}, .numa_node = 1}));
    EXPECT_EQ(node.cores[127], (Core{.processing_units = {254, 255}, .numa_node = 7}));
}

TEST(ProbeTest, ThreadsCountWhenAskedFor) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:4 pu:2");
    options.cpu_unit = CpuUnit::Threads;

    const NodeInventory node = probed(options);

    EXPECT_EQ(node.cpu, Amount::whole(8));
    EXPECT_THAT(node.cores[5].processing_units, ElementsAre(5U));
}

TEST(ProbeTest, OneCoreIsEnough) {
    const FakeRoot root;

    const NodeInventory node = probed(options_for(root, "core:1 pu:1"));

    EXPECT_EQ(node.cpu, Amount::whole(1));
    EXPECT_THAT(node.cores, ElementsAre(Core{.processing_units = {0}, .numa_node = 0}));
}

TEST(ProbeTest, OneHundredAndTwentyEightCoresOnOneNumaNode) {
    const FakeRoot root;

    EXPECT_THAT(probed(options_for(root, "core:128 pu:1")).cores, SizeIs(128));
}

TEST(ProbeTest, TheCgroupsCpusetLeavesTheRestOut) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpuset.cpus.effective", "32-47\n");

    const NodeInventory node = probed(options_for(root, kTwoSockets));

    EXPECT_EQ(node.cpu, Amount::whole(8));
    EXPECT_EQ(node.cores.front(), (Core{.processing_units = {32, 33}, .numa_node = 1}));
}

TEST(ProbeTest, AMaskSetOnPurposeNarrowsTheCgroupsSet) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpuset.cpus.effective", "2-7\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.affinity = std::vector<std::uint32_t>{0, 1, 2, 3};

    EXPECT_THAT(
        probed(options).cores,
        ElementsAre(Core{.processing_units = {2}}, Core{.processing_units = {3}})
    );
}

TEST(ProbeTest, ALaunchersBindingIsNotTheNodesShare) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpuset.cpus.effective", "2-7\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.affinity = std::vector<std::uint32_t>{2};

    options.environment = Environment{{.name = "OMPI_COMM_WORLD_RANK", .value = "0"}};
    EXPECT_EQ(probed(options).cpu, Amount::whole(6));

    options.environment = Environment{
        {.name = "SLURM_STEP_ID", .value = "0"},
        {.name = "SLURM_CPU_BIND_TYPE", .value = "mask_cpu:"}};
    EXPECT_EQ(probed(options).cpu, Amount::whole(6));

    options.environment = Environment{
        {.name = "SLURM_STEP_ID", .value = "0"},
        {.name = "PMIX_RANK", .value = "0"},
        {.name = "SLURM_CPU_BIND_TYPE", .value = "none"}};
    EXPECT_EQ(probed(options).cpu, Amount::whole(1));
}

void write_process(
    const FakeRoot& root,
    const std::string& pid,
    const std::string& parent,
    const std::string& cpus,
    const std::string& variable
) {
    root.write(
        "/proc/" + pid + "/status",
        "Name:\tx\nPPid:\t" + parent + "\nCpus_allowed_list:\t" + cpus + "\n"
    );
    root.write("/proc/" + pid + "/environ", "HOME=/h" + std::string(1, '\0') + variable + "=0");
}

TEST(ProbeTest, AMaskSetOnMpirunOnPurposeIsTheNodesShare) {
    const FakeRoot root;
    write_process(root, "self", "20", "0", "OMPI_COMM_WORLD_RANK");
    write_process(root, "20", "10", "0", "OMPI_COMM_WORLD_RANK");
    write_process(root, "10", "1", "0-3", "SLURM_PROCID");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.affinity = std::vector<std::uint32_t>{0};
    options.environment = Environment{{.name = "OMPI_COMM_WORLD_RANK", .value = "0"}};

    EXPECT_EQ(probed(options).cpu, Amount::whole(4));
}

TEST(ProbeTest, TrialsRunWhereTheLauncherRunsNotWhereItBoundItsRank) {
    const FakeRoot root;
    write_process(root, "self", "20", "0", "OMPI_COMM_WORLD_RANK");
    write_process(root, "20", "1", "0-2", "HOST");
    ProbeOptions options = options_for(root, "core:8 pu:1");

    options.environment = Environment{{.name = "OMPI_COMM_WORLD_RANK", .value = "0"}};
    EXPECT_THAT(threads_for_trials(options), ElementsAre(0, 1, 2));

    options.environment = Environment{};
    EXPECT_THAT(threads_for_trials(options), IsEmpty());
}

TEST(ProbeTest, WhereSlurmBoundTheRankTrialsMayUseTheWholeCpuset) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpuset.cpus.effective", "2-4\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_STEP_ID", .value = "0"},
        {.name = "SLURM_CPU_BIND_TYPE", .value = "mask_cpu:"}};

    EXPECT_THAT(threads_for_trials(options), ElementsAre(2, 3, 4));
}

TEST(ProbeTest, ALauncherOutsideTheCgroupSaysNothingAboutIt) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpuset.cpus.effective", "2-7\n");
    write_process(root, "self", "10", "2", "PMI_RANK");
    write_process(root, "10", "1", "0-1", "HOST");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{{.name = "PMI_RANK", .value = "0"}};

    EXPECT_EQ(probed(options).cpu, Amount::whole(6));
}

TEST(ProbeTest, ACoreOfWhichOneThreadIsAllowedCountsWithThatThread) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:2 pu:2");
    options.affinity = std::vector<std::uint32_t>{1, 2, 3};

    EXPECT_THAT(
        probed(options).cores,
        ElementsAre(Core{.processing_units = {1}}, Core{.processing_units = {2, 3}})
    );
}

TEST(ProbeTest, ThisProcesssOwnMaskIsUsedOnTheRealMachine) {
    cpu_set_t before;
    CPU_ZERO(&before);
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    std::size_t first = 0;
    while (!CPU_ISSET(first, &before)) {
        ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);

    const NodeInventory node = probed(ProbeOptions{.environment = Environment{}});

    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    EXPECT_EQ(node.cpu, Amount::whole(1));
    ASSERT_THAT(node.cores, SizeIs(1));
    EXPECT_THAT(node.cores[0].processing_units, ElementsAre(static_cast<std::uint32_t>(first)));
    EXPECT_GT(node.memory_bytes, 0);
    EXPECT_FALSE(node.name.empty());
}

TEST(ProbeTest, AQuotaMakesThePoolSmallerThanTheCores) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpu.max", "150000 100000\n");

    const NodeInventory node = probed(options_for(root, "core:8 pu:1"));

    EXPECT_EQ(node.cpu, Amount::ten_thousandths(15'000));
    EXPECT_THAT(node.cores, SizeIs(8));
}

TEST(ProbeTest, APlainTrialFitsWhateverTheQuota) {
    const FakeRoot root;
    write_unified_cgroup(root, "cpu.max", "20000 100000\n");

    EXPECT_EQ(probed(options_for(root, "core:8 pu:1")).cpu, Amount::whole(1));
}

TEST(ProbeTest, SlurmsShareLimitsThePoolAndTheMemory) {
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1 kB\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"},
        {.name = "SLURM_CPUS_ON_NODE", .value = "4"},
        {.name = "SLURM_MEM_PER_NODE", .value = "1000"}};

    const NodeInventory node = probed(options);

    EXPECT_EQ(node.cpu, Amount::whole(4));
    EXPECT_EQ(node.memory_bytes, std::int64_t{1000} << 20);
}

TEST(ProbeTest, MemoryPerCpuIsTakenForEveryCpuOfTheJobHere) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"},
        {.name = "SLURM_CPUS_ON_NODE", .value = "4"},
        {.name = "SLURM_MEM_PER_CPU", .value = "2048"}};

    EXPECT_EQ(probed(options).memory_bytes, 8 * kGibibyte);
}

TEST(ProbeTest, SlurmsZeroMeansAllOfTheMemory) {
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:       67108864 kB\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"}, {.name = "SLURM_MEM_PER_NODE", .value = "0"}};

    EXPECT_EQ(probed(options).memory_bytes, 64 * kGibibyte);
}

TEST(ProbeTest, SlurmsVariablesOutsideAJobMeanNothing) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{{.name = "SLURM_CPUS_ON_NODE", .value = "4"}};

    EXPECT_EQ(probed(options).cpu, Amount::whole(8));
}

TEST(ProbeTest, AVariableThatMeansNothingIsNamed) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"}, {.name = "SLURM_CPUS_ON_NODE", .value = "4(x2)"}};

    const Result<NodeInventory> node = probe_node(options);

    ASSERT_FALSE(node.ok());
    EXPECT_EQ(node.error().code, ErrorCode::InvalidInput);
    EXPECT_THAT(node.error().message, HasSubstr("SLURM_CPUS_ON_NODE=\"4(x2)\""));
}

TEST(ProbeTest, TheCgroupsMemoryIsTheNodesWhenItIsLess) {
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:       67108864 kB\n");
    write_unified_cgroup(root, "memory.max", "4294967296\n");

    EXPECT_EQ(probed(options_for(root, "core:8 pu:1")).memory_bytes, 4 * kGibibyte);
}

TEST(ProbeTest, NoCoreLeftIsAnError) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:2 pu:1");
    options.affinity = std::vector<std::uint32_t>{5};

    const Result<NodeInventory> node = probe_node(options);

    ASSERT_FALSE(node.ok());
    EXPECT_THAT(node.error().message, HasSubstr("no core is left"));
}

TEST(ProbeTest, AnUnreadableTopologyIsNamed) {
    const FakeRoot root;

    const Result<NodeInventory> node = probe_node(options_for(root, "sockets of cores"));

    ASSERT_FALSE(node.ok());
    EXPECT_THAT(node.error().message, HasSubstr("\"sockets of cores\" is no topology"));
}

void write_gpu(const FakeRoot& root, const char* address, const char* minor, const char* node) {
    const std::string at(address);
    root.write(
        "/proc/driver/nvidia/gpus/" + at + "/information",
        "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-" + at + "\nBus Location: \t " + at +
            "\nDevice Minor: \t " + minor + "\nGPU Excluded:\t No\n"
    );
    root.write("/sys/bus/pci/devices/" + at + "/numa_node", std::string(node) + "\n");
}

TEST(ProbeTest, GpusAreListedInOrderOfTheirAddressesWithTheirNumaNodes) {
    const FakeRoot root;
    write_gpu(root, "0000:86:00.0", "0", "1");
    write_gpu(root, "0000:18:00.0", "1", "-1");
    root.write("/dev/nvidia0", "");
    root.write("/dev/nvidia1", "");

    EXPECT_THAT(
        probed(options_for(root, "core:2 pu:1")).devices,
        ElementsAre(
            Device{.label = "0", .kind = DeviceKind::Cuda, .numa_node = 0, .model = "NVIDIA H200"},
            Device{.label = "1", .kind = DeviceKind::Cuda, .numa_node = 1, .model = "NVIDIA H200"}
        )
    );
}

TEST(ProbeTest, AGpuWithoutADeviceFileBelongsToSomebodyElse) {
    const FakeRoot root;
    write_gpu(root, "0000:18:00.0", "0", "0");
    write_gpu(root, "0000:86:00.0", "1", "0");
    root.write("/dev/nvidia1", "");

    EXPECT_THAT(probed(options_for(root, "core:2 pu:1")).devices, SizeIs(1));
}

TEST(ProbeTest, DeviceFilesAreCountedWhereTheDriverListsNothing) {
    const FakeRoot root;
    for (const char* file : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"}) {
        root.write(std::string("/dev/") + file, "");
    }

    EXPECT_THAT(probed(options_for(root, "core:2 pu:1")).devices, SizeIs(2));
}

TEST(ProbeTest, TheMaskChoosesAmongTheGpusAndMeansNothingWithoutAny) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:2 pu:1");
    options.environment = Environment{{.name = "CUDA_VISIBLE_DEVICES", .value = "0-3"}};
    EXPECT_THAT(probed(options).devices, IsEmpty());

    write_gpu(root, "0000:18:00.0", "0", "0");
    root.write("/dev/nvidia0", "");

    const Result<NodeInventory> node = probe_node(options);
    ASSERT_FALSE(node.ok());
    EXPECT_THAT(node.error().message, HasSubstr("CUDA_VISIBLE_DEVICES=\"0-3\""));
}

/// A node with so many GPUs, in a step of a Slurm job.
class SlurmDevices {
  public:
    explicit SlurmDevices(int gpus) {
        for (int index = 0; index < gpus; ++index) {
            root_.write("/dev/nvidia" + std::to_string(index), "");
        }
    }

    std::vector<std::string> labels(Environment environment) const {
        environment.push_back({.name = "SLURM_JOB_ID", .value = "7"});
        environment.push_back({.name = "SLURM_STEP_ID", .value = "0"});
        ProbeOptions options = options_for(root_, "core:2 pu:1");
        options.environment = std::move(environment);
        std::vector<std::string> labels;
        for (const Device& device : probed(options).devices) {
            labels.push_back(device.label);
        }
        return labels;
    }

  private:
    FakeRoot root_;
};

TEST(ProbeTest, SlurmsGpusOfTheStepAreTaken) {
    // --gres=gpu:2, the second job on the node.
    EXPECT_THAT(
        SlurmDevices(4).labels(
            {{.name = "CUDA_VISIBLE_DEVICES", .value = "2,3"},
             {.name = "SLURM_STEP_GPUS", .value = "2,3"},
             {.name = "SLURM_GPUS_ON_NODE", .value = "2"},
             {.name = "SLURM_JOB_GPUS", .value = "2,3"}}
        ),
        ElementsAre("2", "3")
    );
}

TEST(ProbeTest, UnevenNodesHaveTheirOwnGpusAndNotThoseOfTheFirst) {
    // --gpus=6 over nodes of four and two.
    EXPECT_THAT(
        SlurmDevices(2).labels(
            {{.name = "CUDA_VISIBLE_DEVICES", .value = "0,1"},
             {.name = "SLURM_STEP_GPUS", .value = "0,1"},
             {.name = "SLURM_GPUS_ON_NODE", .value = "2"},
             {.name = "SLURM_JOB_GPUS", .value = "0,1,2,3"}}
        ),
        ElementsAre("0", "1")
    );
}

TEST(ProbeTest, AMaskThatLeakedToANodeWithoutGpusShowsNone) {
    // --exclusive without --gres.
    EXPECT_THAT(
        SlurmDevices(0).labels(
            {{.name = "CUDA_VISIBLE_DEVICES", .value = "0,1,2,3"},
             {.name = "SLURM_JOB_GPUS", .value = "0,1,2,3"}}
        ),
        IsEmpty()
    );
}

TEST(ProbeTest, GpusThatSlurmGaveTheJobButNotTheStepAreNotTaken) {
    // --exclusive without --gres, on nodes with GPUs.
    EXPECT_THAT(
        SlurmDevices(4).labels({{.name = "SLURM_JOB_GPUS", .value = "0,1,2,3"}}), IsEmpty()
    );
    EXPECT_THAT(
        SlurmDevices(4).labels(
            {{.name = "CUDA_VISIBLE_DEVICES", .value = "0,1,2,3"},
             {.name = "SLURM_GPUS_ON_NODE", .value = "0"},
             {.name = "SLURM_JOB_GPUS", .value = "0,1,2,3"}}
        ),
        IsEmpty()
    );
}

TEST(ProbeTest, AStepWithoutAMaskHasTheGpusThatSlurmNames) {
    EXPECT_THAT(
        SlurmDevices(4).labels(
            {{.name = "SLURM_STEP_GPUS", .value = "1,2"}, {.name = "SLURM_JOB_GPUS", .value = "0"}}
        ),
        ElementsAre("1", "2")
    );
}

TEST(ProbeTest, GpusThatSlurmDoesNotKnowOfAreTheNodes) {
    EXPECT_THAT(SlurmDevices(2).labels({}), ElementsAre("0", "1"));
    EXPECT_THAT(
        SlurmDevices(2).labels({{.name = "CUDA_VISIBLE_DEVICES", .value = "1"}}), ElementsAre("1")
    );
}

TEST(ProbeTest, TheBatchShellsMaskIsItsNodesOwn) {
    const FakeRoot root;
    root.write("/dev/nvidia0", "");
    root.write("/dev/nvidia1", "");
    ProbeOptions options = options_for(root, "core:2 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"},
        {.name = "SLURM_JOB_GPUS", .value = "1"},
        {.name = "CUDA_VISIBLE_DEVICES", .value = "1"}};

    EXPECT_THAT(probed(options).devices, SizeIs(1));
}

TEST(ProbeTest, TheNodesNameIsSlurms) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:2 pu:1");
    options.name.clear();
    options.environment = Environment{{.name = "SLURMD_NODENAME", .value = "gpu07"}};

    EXPECT_EQ(probed(options).name, "gpu07");
}

TEST(ProbeTest, RanksAndNumbersOfNodesMeanNothing) {
    const FakeRoot root;
    ProbeOptions options = options_for(root, "core:4 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"},
        {.name = "SLURM_NODEID", .value = "0"},
        {.name = "SLURM_PROCID", .value = "0"},
        {.name = "SLURM_JOB_CPUS_PER_NODE", .value = "2,1"},
        {.name = "SLURM_TASKS_PER_NODE", .value = "1(x2)"}};

    EXPECT_EQ(probed(options).cpu, Amount::whole(4));
}

TEST(ProbeTest, WithNeitherMemoryVariableTheNodesMemoryIsTheJobs) {
    // --exclusive --mem=0.
    const FakeRoot root;
    root.write("/proc/meminfo", "MemTotal:       67108864 kB\n");
    ProbeOptions options = options_for(root, "core:8 pu:1");
    options.environment = Environment{
        {.name = "SLURM_JOB_ID", .value = "7"}, {.name = "SLURM_CPUS_ON_NODE", .value = "8"}};

    EXPECT_EQ(probed(options).memory_bytes, 64 * kGibibyte);
}

}  // namespace
}  // namespace muster
