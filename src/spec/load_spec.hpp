// SPDX-License-Identifier: Apache-2.0
//
// load_spec - the spec file, YAML or JSON, to an ExperimentSpec. docs/spec.md is its reference.
//
// Every message reads `file:line:column: key.path: what is there; what would be right`. Up to ten
// problems are told at once, in the order of the file, one a line.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

namespace muster {

struct LoadOptions {
    /// Absolute: what `storage.path` and a relative path of the spec are relative to. Empty is the
    /// process's current directory.
    std::string current_dir;
};

/// Reads the spec at `path`, with `sets` ("trial.time_limit=10m") over what the file says.
/// Errors: NotFound or System when the file cannot be read, NotSupported when all that is wrong is
/// keys of a later version, InvalidInput.
Result<ExperimentSpec> load_spec(
    const std::string& path,
    const std::vector<std::string>& sets = {},
    const LoadOptions& options = {}
);

/// As load_spec() for a text. `path` gives messages their name, the experiment its default name,
/// and relative paths their folder; it is not opened.
Result<ExperimentSpec> parse_spec(
    std::string_view text,
    const std::string& path,
    const std::vector<std::string>& sets = {},
    const LoadOptions& options = {}
);

}  // namespace muster
