# SPDX-License-Identifier: Apache-2.0
muster_test(unit resources_test.cpp LINKS muster_resources)
