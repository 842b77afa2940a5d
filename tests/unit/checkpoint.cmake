# SPDX-License-Identifier: Apache-2.0
muster_test(unit checkpoint_files_test.cpp LINKS muster_checkpoint)
muster_test(unit checkpoint_transfer_test.cpp LINKS muster_checkpoint)
