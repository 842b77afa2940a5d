# SPDX-License-Identifier: Apache-2.0
muster_test(unit cluster_test.cpp LINKS muster_placement)
muster_test(unit placement_random_test.cpp LINKS muster_placement)
muster_test(unit queue_test.cpp LINKS muster_placement)
muster_test(unit cores_test.cpp LINKS muster_placement)
