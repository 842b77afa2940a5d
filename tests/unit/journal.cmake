# SPDX-License-Identifier: Apache-2.0
muster_test(unit journal_record_test.cpp LINKS muster_journal fmt::fmt)
muster_test(unit journal_test.cpp LINKS muster_journal)
muster_test(unit journal_checkpoints_test.cpp LINKS muster_journal muster_head)
muster_test(unit journal_restore_test.cpp LINKS muster_runtime)
muster_test(unit journal_damage_test.cpp LINKS muster_runtime TIMEOUT 300)
muster_test(unit journal_storage_test.cpp LINKS muster_journal)
