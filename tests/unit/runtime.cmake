# SPDX-License-Identifier: Apache-2.0
muster_test(unit runtime_test.cpp LINKS muster_runtime)
muster_test(unit owner_file_test.cpp LINKS muster_runtime)
muster_test(unit roles_test.cpp LINKS muster_runtime)
muster_test(unit roll_call_test.cpp LINKS muster_runtime)
muster_test(unit live_view_test.cpp LINKS muster_runtime)
muster_test(unit node_checkpoints_test.cpp LINKS muster_runtime)
