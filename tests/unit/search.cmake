# SPDX-License-Identifier: Apache-2.0
muster_test(unit expression_test.cpp LINKS muster_search)
muster_test(unit sample_test.cpp LINKS muster_search)
muster_test(unit search_space_check_test.cpp LINKS muster_search)
muster_test(unit searcher_test.cpp LINKS muster_search)
