# SPDX-License-Identifier: Apache-2.0
muster_test(unit journal_record_test.cpp LINKS muster_journal)
muster_test(unit journal_test.cpp LINKS muster_journal)
