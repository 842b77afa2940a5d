// SPDX-License-Identifier: Apache-2.0

#include "muster/resource_request.hpp"

#include <fmt/format.h>

namespace muster {
namespace {

Status take(double value, const std::string& place, Amount& amount) {
    const Result<Amount> read = Amount::from_real(value);
    if (!read.ok()) {
        return Error{read.error().code, place + ": " + read.error().message};
    }
    amount = *read;
    return Ok{};
}

Result<Bundle> to_bundle(const ResourceRequest& request, const std::string& place) {
    Bundle bundle;
    if (Status taken = take(request.cpu, place + "cpu", bundle.cpu); !taken.ok()) {
        return taken.error();
    }
    if (Status taken = take(request.gpu, place + "gpu", bundle.gpu); !taken.ok()) {
        return taken.error();
    }
    if (!request.memory.empty()) {
        const Result<std::int64_t> bytes = parse_bytes(request.memory);
        if (!bytes.ok()) {
            return Error{bytes.error().code, place + "memory: " + bytes.error().message};
        }
        bundle.memory_bytes = *bytes;
    }
    for (const auto& [name, value] : request.custom) {
        Amount amount;
        if (!is_custom_resource_name(name)) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format("{}'{}' is no name of a custom resource", place, name)};
        }
        if (Status taken = take(value, place + name, amount); !taken.ok()) {
            return taken.error();
        }
        bundle.set_custom(name, amount);
    }
    return bundle;
}

}  // namespace

Result<PlacementGroupSpec> to_group(const GroupRequest& request) {
    PlacementGroupSpec group;
    group.bundles.clear();
    group.strategy = request.strategy;
    for (const ResourceRequest& one : request.bundles) {
        const bool alone = request.bundles.size() == 1;
        const std::string place =
            alone ? "resources: " : fmt::format("resources: bundle {}: ", group.bundles.size());
        Result<Bundle> bundle = to_bundle(one, place);
        if (!bundle.ok()) {
            return bundle.error();
        }
        group.bundles.push_back(std::move(*bundle));
    }
    if (Status valid = validate(group); !valid.ok()) {
        return valid.error();
    }
    return group;
}

}  // namespace muster
