# SPDX-License-Identifier: Apache-2.0
muster_test(unit placeholder_test.cpp LINKS muster_model)
