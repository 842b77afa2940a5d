// SPDX-License-Identifier: Apache-2.0

#include "sim/resource_use.hpp"

#include <algorithm>

namespace muster {
namespace {

double amount_of(const ResourceSet& resources, const std::string& resource) {
    if (resource == "cpu") {
        return resources.cpu.real();
    }
    if (resource == "gpu") {
        return resources.gpu.real();
    }
    if (resource == "memory") {
        return static_cast<double>(resources.memory_bytes);
    }
    return resources.custom_amount(resource).real();
}

}  // namespace

UseMeter::UseMeter(const ResourceSet& capacity) {
    std::vector<std::string> names{"cpu", "gpu", "memory"};
    for (const NamedAmount& custom : capacity.custom) {
        names.push_back(custom.name);
    }
    for (std::string& name : names) {
        const double amount = amount_of(capacity, name);
        if (amount > 0) {
            gauges_.push_back({std::move(name), amount, 0, 0, 0, {}});
        }
    }
}

void UseMeter::add(const ResourceSet& resources, TimePoint now) {
    change(resources, 1, now);
}

void UseMeter::remove(const ResourceSet& resources, TimePoint now) {
    change(resources, -1, now);
}

void UseMeter::change(const ResourceSet& resources, double sign, TimePoint now) {
    for (Gauge& gauge : gauges_) {
        const double amount = amount_of(resources, gauge.resource);
        if (amount > 0) {
            gauge.integral += gauge.in_use * seconds(now - gauge.since);
            gauge.since = now;
            gauge.in_use += sign * amount;
            gauge.peak = std::max(gauge.peak, gauge.in_use);
        }
    }
}

std::vector<ResourceUse> UseMeter::result(TimePoint end) const {
    std::vector<ResourceUse> uses;
    const double length = seconds(end.since_start);
    for (const Gauge& gauge : gauges_) {
        const double integral = gauge.integral + gauge.in_use * seconds(end - gauge.since);
        const double mean = length > 0 ? integral / length : 0;
        uses.push_back(
            {gauge.resource, 100 * mean / gauge.capacity, 100 * gauge.peak / gauge.capacity}
        );
    }
    return uses;
}

}  // namespace muster
