# SPDX-License-Identifier: Apache-2.0
muster_test(unit slurm_job_test.cpp LINKS muster_slurm)
muster_test(unit slurm_question_test.cpp LINKS muster_slurm)
muster_test(unit slurm_requeue_test.cpp LINKS muster_slurm)
