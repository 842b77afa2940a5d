// SPDX-License-Identifier: Apache-2.0

#include "transport/launcher.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::HasSubstr;

using Environment = std::vector<const char*>;

Result<Launcher> launcher_of(Environment environment) {
    environment.push_back(nullptr);
    return find_launcher(environment.data());
}

Recovery recovery_of(Environment environment) {
    environment.push_back(nullptr);
    return find_recovery(environment.data());
}

TEST(LauncherTest, LaptopLoginNodeAndBatchScriptHaveNone) {
    EXPECT_EQ(launcher_of({"HOME=/root"}).value(), Launcher::None);
    EXPECT_EQ(
        launcher_of({"SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_PROCID=0"}).value(), Launcher::None
    );
    // An interactive shell by srun --pty.
    EXPECT_EQ(launcher_of({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1"}).value(), Launcher::None);
}

TEST(LauncherTest, MpirunIsKnownInsideAnSrunStepToo) {
    EXPECT_EQ(
        launcher_of({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "OMPI_COMM_WORLD_SIZE=4"})
            .value(),
        Launcher::Mpirun
    );
}

TEST(LauncherTest, SrunWithPmixIsKnown) {
    EXPECT_EQ(
        launcher_of({"SLURM_STEP_ID=0",
                     "SLURM_STEP_NUM_TASKS=4",
                     "PMIX_NAMESPACE=slurm.pmix.7.0",
                     "PMIX_RANK=0"})
            .value(),
        Launcher::Pmix
    );
}

TEST(LauncherTest, CopiesThatCannotMeetAreRefusedWithTheWayOut) {
    const Result<Launcher> srun = launcher_of({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4"});
    ASSERT_FALSE(srun.ok());
    EXPECT_EQ(srun.error().code, ErrorCode::NotSupported);
    EXPECT_THAT(srun.error().message, HasSubstr("4 tasks"));
    EXPECT_THAT(srun.error().message, HasSubstr("--mpi=pmix"));

    const Result<Launcher> mpich = launcher_of({"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=5"});
    ASSERT_FALSE(mpich.ok());
    EXPECT_THAT(mpich.error().message, HasSubstr("Open MPI's mpirun"));
}

TEST(LauncherTest, RecoveryIsWhatMpirunWasTold) {
    EXPECT_EQ(recovery_of({"OMPI_COMM_WORLD_SIZE=2"}), Recovery::Off);
    EXPECT_EQ(
        recovery_of({"OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_orte_enable_recovery=1"}), Recovery::On
    );
    EXPECT_EQ(
        recovery_of({"OMPI_COMM_WORLD_SIZE=2", "OMPI_MCA_orte_enable_recovery=0"}), Recovery::Off
    );
    EXPECT_EQ(recovery_of({"PMIX_RANK=0"}), Recovery::Unknown);
}

}  // namespace
}  // namespace muster
