# SPDX-License-Identifier: Apache-2.0
muster_test(unit agent_test.cpp LINKS muster_agent)
muster_test(unit agent_saving_test.cpp LINKS muster_agent)
muster_test(unit agent_lease_test.cpp LINKS muster_agent)
muster_test(unit launch_plan_test.cpp LINKS muster_agent)
