// SPDX-License-Identifier: Apache-2.0
//
// device_mask_fuzz - CUDA_VISIBLE_DEVICES, after lines that name the GPUs there are.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "probe/device_mask.hpp"

namespace muster::fuzz {

void try_input(std::string_view input) {
    const std::vector<std::string_view> pieces = pieces_of(input);
    const std::string_view mask = pieces.back();
    std::vector<NvidiaGpu> gpus;
    if (pieces.size() > 1) {
        for (const std::string_view name : lines_of(pieces.front())) {
            gpus.push_back({.uuid = std::string(name), .model = "H200"});
        }
    }
    const Result<std::vector<std::string>> entries = parse_device_mask(mask);
    const Result<std::vector<Device>> devices = visible_devices(mask, gpus);

    check(entries.ok() || !devices.ok(), "what can't be read shows nothing");
    if (!devices.ok()) {
        check(devices.error().code == ErrorCode::InvalidInput, "a mask is refused as input");
        return;
    }
    check(devices->size() <= entries->size(), "no device without an entry");
    std::set<std::string> labels;
    for (std::size_t index = 0; index < devices->size(); ++index) {
        const std::string& label = (*devices)[index].label;
        check(label == (*entries)[index], "the mask's order and spelling");
        check(labels.insert(label).second, "no device twice");
    }
    check(visible_devices(std::nullopt, gpus)->size() == gpus.size(), "without a mask, all");
}

}  // namespace muster::fuzz
