// SPDX-License-Identifier: Apache-2.0

#include "runtime/descriptors.hpp"

#include <algorithm>

#include <sys/resource.h>

namespace muster {
namespace {

/// What a run holds open whatever it runs.
constexpr std::uint64_t kOwnFiles = 32;
/// A socket to its keeper, that keeper's end while it is on its way, a connection for reports.
constexpr std::uint64_t kFilesOfATrial = 3;

}  // namespace

DescriptorRoom make_descriptor_room() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return {};
    }
    if (limit.rlim_cur < limit.rlim_max) {
        const rlimit raised{limit.rlim_max, limit.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    const std::uint64_t files = std::min<std::uint64_t>(limit.rlim_cur, 1U << 30U);
    const std::uint64_t trials = (files - std::min(files, kOwnFiles)) / kFilesOfATrial;
    return {files, static_cast<std::uint32_t>(std::max<std::uint64_t>(trials, 1))};
}

}  // namespace muster
