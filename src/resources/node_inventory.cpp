// SPDX-License-Identifier: Apache-2.0

#include "resources/node_inventory.hpp"

namespace muster {

ResourceSet NodeInventory::total() const {
    return ResourceSet{
        .cpu = cpu,
        .gpu = Amount::whole(static_cast<std::int64_t>(devices.size())),
        .memory_bytes = memory_bytes,
        .custom = custom};
}

}  // namespace muster
