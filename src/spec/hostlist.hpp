// SPDX-License-Identifier: Apache-2.0
//
// hostlist - names of nodes in Slurm's bracket form.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

namespace muster {

/// "gpu[01-03,7],login" to gpu01, gpu02, gpu03, gpu7, login: in the order written, with the zeros
/// of a range's lower end. A name may hold several brackets. Errors: InvalidInput for an empty
/// name, a bracket that is not closed, a range that goes down, and more than 100,000 names.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

}  // namespace muster
