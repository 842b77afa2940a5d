// SPDX-License-Identifier: Apache-2.0
//
// read_trial - the `trial` section: what a trial runs, where, and how it is watched.

#pragma once

#include <string>
#include <vector>

#include "muster/experiment.hpp"

#include "spec/section.hpp"

namespace muster {

/// Fills in `trial` from the section `trial` of `top`. Templates are checked against `keys`, the
/// keys of the space; files are read relative to `spec_dir`.
void read_trial(
    const Section& top,
    const std::vector<std::string>& keys,
    const std::string& spec_dir,
    TrialSpec& trial
);

/// `path` from `base`, without dots. REQUIRES: `base` is absolute.
std::string absolute_path(const std::string& path, const std::string& base);

}  // namespace muster
