# SPDX-License-Identifier: Apache-2.0
muster_test(cli run_experiment_test.cpp LINKS muster_runtime TIMEOUT 120)
