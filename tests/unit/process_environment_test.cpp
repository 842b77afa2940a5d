// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process/environment.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

/// What trials get unless it is set, for tests that are about something else.
constexpr const char* kPython = "PYTHONUNBUFFERED=1";
constexpr const char* kBinding = "OMPI_MCA_hwloc_base_binding_policy=none";

TEST(EnvironmentTest, WhatLaunchersSetForTheRankGoes) {
    const EnvironmentList base = trial_base_environment(
        {"OMPI_COMM_WORLD_RANK=0",
         "OMPI_MCA_orte_hnp_uri=x",
         "OMPI_MCA_ess=env",
         "OMPI_MCA_rmaps_base_mapping_policy=ppr:1:node",
         "OMPI_UNIVERSE_SIZE=4",
         "OMPI_FILE_LOCATION=/tmp",
         "PMIX_RANK=0",
         "PMI_RANK=0",
         "PRTE_X=1",
         "SLURM_CPU_BIND=quiet",
         "SLURM_CPU_BIND_LIST=0x1",
         "SLURM_CPUS_PER_TASK=2",
         "SLURM_NTASKS=8",
         "SLURM_NTASKS_PER_NODE=1",
         "SLURM_PROCID=0",
         "SLURM_LOCALID=0",
         "SLURM_NODEID=0",
         "SLURM_STEP_ID=0",
         "SLURM_STEPID=0",
         kPython,
         kBinding},
        {}
    );

    EXPECT_THAT(base, ElementsAre(kPython, kBinding));
}

TEST(EnvironmentTest, WhatSiteAndUserSetStays) {
    const EnvironmentList environment = {
        "PATH=/usr/bin",
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_pml=ucx",
        "OMPI_MCA_btl=self,vader",
        "OMPI_MCA_hwloc_base_report_bindings=1",
        "UCX_TLS=rc",
        "NCCL_DEBUG=INFO",
        "SLURM_CONF=/etc/slurm.conf",
        "SLURM_JOB_ID=7",
        "SLURM_OVERLAP=1",
        "EMPTY=",
        "OMPI_MCA_hwloc_base_binding_policy=core",
        "PYTHONUNBUFFERED="};

    EXPECT_EQ(trial_base_environment(environment, {}), environment);
}

TEST(EnvironmentTest, WhatMusterSetForItselfGoesByName) {
    EXPECT_THAT(
        trial_base_environment(
            {"OMPI_MCA_pml=ob1",
             "OMPI_MCA_btl=self",
             "MUSTER_OWN_VARIABLES=OMPI_MCA_pml:FI_X",
             kPython,
             kBinding},
            {}
        ),
        ElementsAre("OMPI_MCA_btl=self", kPython, kBinding)
    );
}

TEST(EnvironmentTest, ARunWithinATrialDoesNotPassTheOuterTrialOn) {
    EXPECT_THAT(
        trial_base_environment(
            {"MUSTER_SOCKET=/x", "MUSTER_CHECKPOINT=/c", "MUSTER_MINE=1", kPython, kBinding}, {}
        ),
        ElementsAre("MUSTER_MINE=1", kPython, kBinding)
    );
}

TEST(EnvironmentTest, KeepAndDropOverrideTheList) {
    EXPECT_THAT(
        trial_base_environment(
            {"SLURM_PROCID=1", "PMI_RANK=1", "PMI_SIZE=2", "HOME=/h", "AWS_KEY=k", "AWS_ID=i"},
            {.keep = {"SLURM_PROCID", "PMI_*"},
             .drop = {"PMI_SIZE", "AWS_*", "PYTHONUNBUFFERED", "OMPI_MCA_hwloc*"},
             .muster_directory = ""}
        ),
        ElementsAre("SLURM_PROCID=1", "PMI_RANK=1", "HOME=/h")
    );
}

TEST(EnvironmentTest, MusterIsFoundOnPath) {
    const EnvironmentOptions options{.keep = {}, .drop = {}, .muster_directory = "/opt/m/bin"};

    EXPECT_EQ(
        trial_base_environment({"PATH=/usr/bin"}, options).front(), "PATH=/usr/bin:/opt/m/bin"
    );
    EXPECT_EQ(
        trial_base_environment({"PATH=/opt/m/bin:/bin"}, options).front(), "PATH=/opt/m/bin:/bin"
    );
    EXPECT_EQ(
        trial_base_environment({}, options).front(), "PATH=/usr/local/bin:/usr/bin:/bin:/opt/m/bin"
    );
}

TEST(EnvironmentTest, ChangesSayWhy) {
    const std::vector<EnvironmentChange> changes = environment_changes(
        {"PATH=/bin", "PMI_RANK=0", "SECRET=s", "HOME=/h"},
        {.keep = {}, .drop = {"SECRET"}, .muster_directory = "/m"}
    );

    EXPECT_THAT(
        changes,
        ElementsAre(
            EnvironmentChange{
                "OMPI_MCA_hwloc_base_binding_policy",
                std::nullopt,
                "none",
                "so that an mpirun stays on the trial's cores"},
            EnvironmentChange{"PATH", "/bin", "/bin:/m", "so that trials find muster"},
            EnvironmentChange{
                "PMI_RANK",
                "0",
                std::nullopt,
                "set by a launcher for muster's own rank (PMI, PMIx)"},
            EnvironmentChange{
                "PYTHONUNBUFFERED", std::nullopt, "1", "so that Python's output comes at once"},
            EnvironmentChange{"SECRET", "s", std::nullopt, "drop_env"}
        )
    );
}

const EnvironmentList kJobOfThree = {
    "SLURM_JOB_ID=7",
    "SLURMD_NODENAME=n1",
    "SLURM_CPUS_ON_NODE=8",
    "SLURM_NODELIST=n[1-3]",
    "SLURM_JOB_NODELIST=n[1-3]",
    "SLURM_NNODES=3",
    "SLURM_JOB_NUM_NODES=3",
    "SLURM_TASKS_PER_NODE=1(x3)",
    "SLURM_JOB_CPUS_PER_NODE=8,4,8"};

TEST(EnvironmentTest, TheJobsNodesAreThisNodeAlone) {
    EXPECT_THAT(
        trial_base_environment(kJobOfThree, {}),
        ElementsAre(
            "SLURM_JOB_ID=7",
            "SLURMD_NODENAME=n1",
            "SLURM_CPUS_ON_NODE=8",
            "SLURM_NODELIST=n1",
            "SLURM_JOB_NODELIST=n1",
            "SLURM_NNODES=1",
            "SLURM_JOB_NUM_NODES=1",
            "SLURM_TASKS_PER_NODE=8",
            "SLURM_JOB_CPUS_PER_NODE=8",
            kPython,
            kBinding
        )
    );
}

TEST(EnvironmentTest, TheJobsNodesAreThoseOfTheTrialsNode) {
    EXPECT_THAT(
        with_node_values(
            trial_base_environment(kJobOfThree, {}), {"SLURMD_NODENAME=n2", "SLURM_CPUS_ON_NODE=4"}
        ),
        IsSupersetOf(
            {"SLURMD_NODENAME=n2",
             "SLURM_CPUS_ON_NODE=4",
             "SLURM_NODELIST=n2",
             "SLURM_JOB_NODELIST=n2",
             "SLURM_NNODES=1",
             "SLURM_JOB_NUM_NODES=1",
             "SLURM_TASKS_PER_NODE=4",
             "SLURM_JOB_CPUS_PER_NODE=4"}
        )
    );
}

TEST(EnvironmentTest, TheJobsNodesStayWhenTheUserKeepsThem) {
    const EnvironmentList base = trial_base_environment(
        kJobOfThree, {.keep = {"SLURM_JOB_NODELIST"}, .drop = {}, .muster_directory = ""}
    );

    EXPECT_THAT(
        with_node_values(base, {"SLURMD_NODENAME=n2", "SLURM_CPUS_ON_NODE=4"}),
        IsSupersetOf({"SLURM_JOB_NODELIST=n[1-3]", "SLURM_NODELIST=n2"})
    );
}

TEST(EnvironmentTest, ElsewhereThanOnTheJobsNodesTheirListStays) {
    const EnvironmentList environment = {
        "SLURM_JOB_ID=7", "SLURM_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=1(x3)", kPython, kBinding};

    EXPECT_EQ(trial_base_environment(environment, {}), environment);
}

TEST(EnvironmentTest, NodeKeepsItsOwnValues) {
    EXPECT_THAT(
        with_node_values(
            {"HOME=/h", "TMPDIR=/tmp/rank0", "CUDA_VISIBLE_DEVICES=0,1"},
            {"HOME=/root", "TMPDIR=/tmp/node2", "HOSTNAME=node2"}
        ),
        ElementsAre("HOME=/h", "TMPDIR=/tmp/node2", "HOSTNAME=node2")
    );
}

}  // namespace
}  // namespace muster
