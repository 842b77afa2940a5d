# SPDX-License-Identifier: Apache-2.0
muster_test(unit device_mask_test.cpp LINKS muster_probe)
muster_test(unit cgroup_test.cpp LINKS muster_probe)
muster_test(unit format_nodes_test.cpp LINKS muster_probe)
muster_test(unit probe_test.cpp LINKS muster_probe)
