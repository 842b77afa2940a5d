// SPDX-License-Identifier: Apache-2.0
//
// resource_use - adds up over time how much of a capacity is in use.

#pragma once

#include <string>
#include <vector>

#include "muster/resources.hpp"

#include "base/time.hpp"
#include "sim/simulate_spec.hpp"

namespace muster {

class UseMeter {
  public:
    explicit UseMeter(const ResourceSet& capacity);

    /// From `now` on so much more (or less) is in use. `now` never goes back. Resources that are
    /// not part of the capacity are not measured.
    void add(const ResourceSet& resources, TimePoint now);
    void remove(const ResourceSet& resources, TimePoint now);

    /// One entry for each resource of the capacity: cpu, gpu, memory, then custom ones by name.
    std::vector<ResourceUse> result(TimePoint end) const;

  private:
    struct Gauge {
        std::string resource;
        double capacity = 0;
        double in_use = 0;
        double peak = 0;
        /// Amount times seconds, up to `since`.
        double integral = 0;
        TimePoint since;
    };

    void change(const ResourceSet& resources, double sign, TimePoint now);

    std::vector<Gauge> gauges_;
};

}  // namespace muster
