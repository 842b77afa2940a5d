// SPDX-License-Identifier: Apache-2.0

#include "probe/nvidia.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "probe/text.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// The value behind "Name:" in the driver's information file.
std::string_view field(std::string_view information, std::string_view name) {
    for (const std::string_view line : probe::split(information, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && probe::trim(line.substr(0, colon)) == name) {
            return probe::trim(line.substr(colon + 1));
        }
    }
    return {};
}

std::uint32_t numa_node_of(const std::string& root, const std::string& address) {
    const auto content =
        probe::read_small_file(root + "/sys/bus/pci/devices/" + address + "/numa_node");
    const auto node = content ? probe::parse_whole(*content) : std::nullopt;
    return node && *node > 0 ? static_cast<std::uint32_t>(*node) : 0;
}

std::optional<NvidiaGpu> read_gpu(const std::string& root, const std::string& address) {
    const auto information =
        probe::read_small_file(root + "/proc/driver/nvidia/gpus/" + address + "/information");
    if (!information || field(*information, "GPU Excluded") == "Yes") {
        return std::nullopt;
    }
    const std::string_view minor = field(*information, "Device Minor");
    std::error_code error;
    if (!minor.empty() && !fs::exists(root + "/dev/nvidia" + std::string(minor), error)) {
        return std::nullopt;
    }
    const std::string_view uuid = field(*information, "GPU UUID");
    return NvidiaGpu{// A driver that has not started the GPU yet writes question marks.
                     .uuid = uuid.find('?') == std::string_view::npos ? std::string(uuid) : "",
                     .model = std::string(field(*information, "Model")),
                     .numa_node = numa_node_of(root, address)};
}

bool is_device_file(std::string_view name) {
    constexpr std::string_view kPrefix = "nvidia";
    return name.substr(0, kPrefix.size()) == kPrefix &&
           probe::parse_whole(name.substr(kPrefix.size())).value_or(-1) >= 0;
}

}  // namespace

std::vector<NvidiaGpu> list_nvidia_gpus(const std::string& root) {
    std::vector<NvidiaGpu> gpus;
    const std::vector<std::string> addresses = names_in(root + "/proc/driver/nvidia/gpus");
    for (const std::string& address : addresses) {
        if (auto gpu = read_gpu(root, address)) {
            gpus.push_back(std::move(*gpu));
        }
    }
    if (addresses.empty()) {
        const std::vector<std::string> files = names_in(root + "/dev");
        gpus.resize(
            static_cast<std::size_t>(std::count_if(files.begin(), files.end(), is_device_file))
        );
    }
    return gpus;
}

}  // namespace muster
