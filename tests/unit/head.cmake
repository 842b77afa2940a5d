# SPDX-License-Identifier: Apache-2.0
if(TARGET muster_placement)
  muster_test(unit head_test.cpp LINKS muster_head)
  muster_test(unit head_judgement_test.cpp LINKS muster_head)
  muster_test(unit head_nodes_test.cpp LINKS muster_head)
  muster_test(unit head_restore_test.cpp LINKS muster_head)
  muster_test(unit head_saving_test.cpp LINKS muster_head)
  muster_test(unit head_end_test.cpp LINKS muster_head)
endif()
