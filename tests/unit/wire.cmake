# SPDX-License-Identifier: Apache-2.0
muster_test(unit wire_test.cpp LINKS muster_wire)
