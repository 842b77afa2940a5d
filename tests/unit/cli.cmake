# SPDX-License-Identifier: Apache-2.0
if(TARGET muster_cli)
  muster_test(unit text_table_test.cpp LINKS muster_cli)
  muster_test(unit progress_test.cpp LINKS muster_cli)
endif()
