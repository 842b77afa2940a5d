// SPDX-License-Identifier: Apache-2.0

#include "placement/demand.hpp"

#include <algorithm>

namespace muster {

std::optional<Kind> KindTable::find(std::string_view name) const {
    const auto entry = std::find(names_.begin(), names_.end(), name);
    if (entry == names_.end()) {
        return std::nullopt;
    }
    return static_cast<Kind>(entry - names_.begin());
}

Kind KindTable::find_or_add(std::string_view name) {
    if (const auto kind = find(name)) {
        return *kind;
    }
    names_.emplace_back(name);
    return static_cast<Kind>(names_.size() - 1);
}

void Demand::add(const Demand& other) {
    cpu += other.cpu;
    memory += other.memory;
    devices += other.devices;
    most_devices = std::max(most_devices, other.most_devices);
    share = std::max(share, other.share);
    shares += other.shares;
    nothing += other.nothing;
    for (const KindAmount& added : other.custom) {
        const auto place = std::lower_bound(
            custom.begin(),
            custom.end(),
            added.kind,
            [](const KindAmount& entry, Kind kind) { return entry.kind < kind; }
        );
        if (place != custom.end() && place->kind == added.kind) {
            place->amount += added.amount;
        } else {
            custom.insert(place, added);
        }
    }
}

}  // namespace muster
