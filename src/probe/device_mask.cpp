// SPDX-License-Identifier: Apache-2.0

#include "probe/device_mask.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "probe/text.hpp"

namespace muster {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

bool is_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
        return std::isdigit(letter) != 0;
    });
}

bool ends_list(std::string_view entry) {
    const bool is_negative = starts_with(entry, "-") && is_digits(entry.substr(1));
    return entry.empty() || entry == "NoDevFiles" || is_negative;
}

Error not_an_entry(std::string_view entry, std::string_view mask) {
    return Error{
        ErrorCode::InvalidInput,
        fmt::format(
            "CUDA_VISIBLE_DEVICES=\"{}\": \"{}\" is no device; write a list such as \"0,1,2,3\" "
            "or GPU-… and MIG-… names",
            mask,
            entry
        )};
}

/// The GPU that an index or a GPU-… name means; nullptr when it is not there.
const NvidiaGpu* find_gpu(std::string_view entry, const std::vector<NvidiaGpu>& gpus) {
    if (is_digits(entry)) {
        const auto index = probe::parse_whole(entry);
        const bool is_there = index && *index < static_cast<std::int64_t>(gpus.size());
        return is_there ? &gpus[static_cast<std::size_t>(*index)] : nullptr;
    }
    const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const NvidiaGpu& gpu) {
        return starts_with(gpu.uuid, entry);
    });
    return found == gpus.end() ? nullptr : &*found;
}

Device device_of(std::string label, const NvidiaGpu& gpu) {
    return Device{
        .label = std::move(label),
        .kind = DeviceKind::Cuda,
        .numa_node = gpu.numa_node,
        .model = gpu.model};
}

std::vector<Device> all_of(const std::vector<NvidiaGpu>& gpus) {
    std::vector<Device> devices;
    for (std::size_t index = 0; index < gpus.size(); ++index) {
        devices.push_back(device_of(std::to_string(index), gpus[index]));
    }
    return devices;
}

}  // namespace

Result<std::vector<std::string>> parse_device_mask(std::string_view mask) {
    std::vector<std::string> entries;
    for (const std::string_view part : probe::split(mask, ',')) {
        const std::string_view entry = probe::trim(part);
        if (ends_list(entry)) {
            break;
        }
        if (!is_digits(entry) && !starts_with(entry, "GPU-") && !starts_with(entry, "MIG-")) {
            return not_an_entry(entry, mask);
        }
        entries.emplace_back(entry);
    }
    return entries;
}

Result<std::vector<Device>>
visible_devices(std::optional<std::string_view> mask, const std::vector<NvidiaGpu>& gpus) {
    if (!mask) {
        return all_of(gpus);
    }
    const auto entries = parse_device_mask(*mask);
    if (!entries) {
        return entries.error();
    }
    // A driver that gives no names cannot contradict one.
    const bool names_known = std::any_of(gpus.begin(), gpus.end(), [](const NvidiaGpu& gpu) {
        return !gpu.uuid.empty();
    });
    const NvidiaGpu unknown;
    std::vector<Device> devices;
    std::vector<std::string> taken;
    for (const std::string& entry : *entries) {
        const bool on_trust =
            starts_with(entry, "MIG-") || (starts_with(entry, "GPU-") && !names_known);
        const NvidiaGpu* gpu = on_trust ? &unknown : find_gpu(entry, gpus);
        if (gpu == nullptr) {
            break;
        }
        const std::string identity = on_trust ? entry : std::to_string(gpu - gpus.data());
        if (std::find(taken.begin(), taken.end(), identity) != taken.end()) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "CUDA_VISIBLE_DEVICES=\"{}\": \"{}\" names a device for the second time; name "
                    "each device once",
                    *mask,
                    entry
                )};
        }
        taken.push_back(identity);
        devices.push_back(device_of(entry, *gpu));
    }
    return devices;
}

}  // namespace muster
