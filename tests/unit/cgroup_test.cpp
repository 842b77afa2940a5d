// SPDX-License-Identifier: Apache-2.0

#include "probe/cgroup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/text.hpp"
#include "unit/fake_root.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::Optional;

constexpr auto kUnified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr auto kSeparate =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n";

TEST(CpuListTest, RangesAndNumbersAreReadInOrderAndOnce) {
    EXPECT_THAT(probe::parse_cpu_list("8,0-3,2\n"), Optional(ElementsAre(0U, 1U, 2U, 3U, 8U)));
    EXPECT_THAT(probe::parse_cpu_list("\n"), Optional(ElementsAre()));
}

TEST(CpuListTest, OtherTextIsNoList) {
    EXPECT_EQ(probe::parse_cpu_list("a"), std::nullopt);
    EXPECT_EQ(probe::parse_cpu_list("3-1"), std::nullopt);
    EXPECT_EQ(probe::parse_cpu_list("0-99999999999"), std::nullopt);
    EXPECT_EQ(probe::parse_cpu_list("0,,1"), std::nullopt);
}

TEST(CgroupTest, NothingThereLimitsNothing) {
    const FakeRoot root;

    EXPECT_EQ(read_cgroup_limits(root.path()), CgroupLimits{});
}

TEST(CgroupTest, Version2TakesTheLeastOnTheWayUp) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
    root.write("/proc/self/mountinfo", kUnified);
    const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
    root.write(job + "/step_0/cpuset.cpus.effective", "2-5\n");
    root.write(job + "/step_0/memory.max", "max\n");
    root.write(job + "/step_0/cpu.max", "max 100000\n");
    root.write(job + "/memory.max", "2147483648\n");
    root.write(job + "/cpu.max", "150000 100000\n");
    root.write("/sys/fs/cgroup/system.slice/memory.max", "8589934592\n");
    root.write("/sys/fs/cgroup/cpuset.cpus.effective", "0-63\n");

    EXPECT_EQ(
        read_cgroup_limits(root.path()),
        (CgroupLimits{
            .cpus = std::vector<std::uint32_t>{2, 3, 4, 5},
            .cpu_ten_thousandths = 15'000,
            .memory_bytes = std::int64_t{2} << 30})
    );
}

TEST(CgroupTest, Version2WithoutACpusetControllerAsksTheGroupAbove) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/user.slice/session-3.scope\n");
    root.write("/proc/self/mountinfo", kUnified);
    root.write("/sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-1\n");

    EXPECT_THAT(read_cgroup_limits(root.path()).cpus, Optional(ElementsAre(0U, 1U)));
}

TEST(CgroupTest, Version1ReadsEachHierarchyAndKnowsItsWordsForNoLimit) {
    const FakeRoot root;
    root.write(
        "/proc/self/cgroup",
        "9:name=systemd:/\n4:memory:/slurm/job_7\n3:cpuset:/slurm/job_7\n1:cpu,cpuacct:/slurm\n0::/"
        "\n"
    );
    root.write("/proc/self/mountinfo", kSeparate);
    root.write("/sys/fs/cgroup/cpuset/slurm/job_7/cpuset.cpus", "4,6\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "-1\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
    root.write("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "1073741824\n");

    EXPECT_EQ(
        read_cgroup_limits(root.path()),
        (CgroupLimits{
            .cpus = std::vector<std::uint32_t>{4, 6},
            .cpu_ten_thousandths = std::nullopt,
            .memory_bytes = std::int64_t{1} << 30})
    );
}

TEST(CgroupTest, Version1QuotaOfTheGroupAboveCounts) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "1:cpu,cpuacct:/a/b\n");
    root.write("/proc/self/mountinfo", kSeparate);
    root.write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "400000\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n");
    root.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");

    EXPECT_THAT(read_cgroup_limits(root.path()).cpu_ten_thousandths, Optional(20'000));
}

TEST(CgroupTest, BothVersionsAtOnceAreReadTogether) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "4:memory:/box\n3:cpuset:/\n0::/box\n");
    root.write(
        "/proc/self/mountinfo",
        std::string(kSeparate) +
            "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
    );
    root.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912\n");
    root.write("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n");
    root.write("/sys/fs/cgroup/unified/box/cpu.max", "50000 100000\n");

    EXPECT_EQ(
        read_cgroup_limits(root.path()),
        (CgroupLimits{
            .cpus = std::vector<std::uint32_t>{0, 1},
            .cpu_ten_thousandths = 5'000,
            .memory_bytes = std::int64_t{512} << 20})
    );
}

TEST(CgroupTest, AContainersMountThatShowsThePartOfTheProcessIsTheGroup) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "4:memory:/docker/abc\n");
    root.write(
        "/proc/self/mountinfo",
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    );
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");

    EXPECT_THAT(read_cgroup_limits(root.path()).memory_bytes, Optional(std::int64_t{256} << 20));
}

TEST(CgroupTest, APathOutsideTheMountFallsBackToTheMountsOwnDirectory) {
    const FakeRoot root;
    root.write("/proc/self/cgroup", "0::/../other\n");
    root.write("/proc/self/mountinfo", "30 23 0:26 /pod /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    root.write("/sys/fs/cgroup/memory.max", "268435456\n");

    EXPECT_THAT(read_cgroup_limits(root.path()).memory_bytes, Optional(std::int64_t{256} << 20));
}

}  // namespace
}  // namespace muster
