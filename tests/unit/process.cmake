# SPDX-License-Identifier: Apache-2.0
# What starts processes counts as cli, wherever its file is.
muster_test(cli process_launch_test.cpp LINKS muster_process)
