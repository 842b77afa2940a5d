# SPDX-License-Identifier: Apache-2.0
muster_test(unit report_line_test.cpp LINKS muster_report)
muster_test(unit report_server_test.cpp LINKS muster_report)
muster_test(unit report_client_test.cpp LINKS muster_report)
muster_test(unit report_checkpoint_test.cpp LINKS muster_report)
