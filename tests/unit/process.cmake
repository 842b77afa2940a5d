# SPDX-License-Identifier: Apache-2.0
# What starts processes counts as cli, wherever its file is.
muster_test(unit process_line_patterns_test.cpp LINKS muster_process)
muster_test(unit process_environment_test.cpp LINKS muster_process)
muster_test(unit process_frames_test.cpp LINKS muster_process)
muster_test(cli process_launch_test.cpp LINKS muster_process)
muster_test(cli process_function_test.cpp LINKS muster_process)
muster_test(cli process_end_test.cpp LINKS muster_process)
muster_test(cli process_loss_test.cpp LINKS muster_process)
muster_test(cli process_output_test.cpp LINKS muster_process)
