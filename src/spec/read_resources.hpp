// SPDX-License-Identifier: Apache-2.0
//
// read_resources - what trials ask for and what is kept back or declared: `resources`,
// `placement_group`, `reserve`, `cluster_resources`, `nodes`.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/experiment.hpp"

#include "spec/document.hpp"
#include "spec/section.hpp"

namespace muster {

/// Fills in every part of `spec` that is about resources. `spec.space` has been read.
void read_resources(const Section& top, ExperimentSpec& spec);

/// Reads {cpu: 2, memory: 2GiB, licence: 1}, leaving out the keys in `other_keys`.
ResourceSet read_amounts(
    const YamlNode& map,
    const std::string& path,
    const std::vector<std::string>& other_keys,
    Problems& problems
);

/// A config, as text, that none of `alternatives` takes. Empty when there is none, or when that
/// cannot be told because a key in their conditions has no listed values or is conditional itself.
std::string config_without_alternative(
    const std::vector<ResourceAlternative>& alternatives,
    const SearchSpace& space
);

}  // namespace muster
