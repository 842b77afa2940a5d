# SPDX-License-Identifier: Apache-2.0
muster_test(unit launch_test.cpp LINKS muster_launch)
