# SPDX-License-Identifier: Apache-2.0
muster_test(unit slurm_job_test.cpp LINKS muster_slurm)
muster_test(unit slurm_question_test.cpp LINKS muster_slurm)
muster_test(unit slurm_requeue_test.cpp LINKS muster_slurm)
if(TARGET muster_cli)
  muster_test(unit end_watch_test.cpp LINKS muster_runtime)
  muster_test(unit lost_head_test.cpp LINKS muster_runtime)
  muster_test(unit until_test.cpp LINKS muster_cli)
endif()
