// SPDX-License-Identifier: Apache-2.0
//
// nvidia - the GPUs that NVIDIA's driver shows in /proc, without its libraries.

#pragma once

#include <string>
#include <vector>

#include "probe/device_mask.hpp"

namespace muster {

/// In order of their PCI addresses. A GPU without its /dev/nvidia* file, as in a container that was
/// given others, is left out. When the driver lists nothing in /proc the device files are counted.
std::vector<NvidiaGpu> list_nvidia_gpus(const std::string& root);

}  // namespace muster
