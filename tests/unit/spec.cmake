# SPDX-License-Identifier: Apache-2.0
muster_test(unit placeholder_test.cpp LINKS muster_model)
muster_test(unit spec_load_test.cpp LINKS muster_spec)
muster_test(unit spec_trial_test.cpp LINKS muster_spec)
muster_test(unit spec_space_test.cpp LINKS muster_spec)
muster_test(unit spec_resources_test.cpp LINKS muster_spec)
muster_test(unit spec_resolved_test.cpp LINKS muster_spec)
muster_test(unit spec_set_test.cpp LINKS muster_spec)
muster_test(unit spec_hostile_test.cpp LINKS muster_spec)
