// SPDX-License-Identifier: Apache-2.0
//
// experiment_dir - <storage>/<name>: made, or found with an experiment that can go on.

#pragma once

#include <string>

#include "muster/error.hpp"
#include "muster/experiment.hpp"

namespace muster {

struct ExperimentDir {
    /// Absolute.
    std::string path;
    /// The last part of `path`: the spec's name, or that with a number behind it.
    std::string name;
    /// There is a journal of an earlier run in it.
    bool has_journal = false;

    std::string journal() const { return path + "/journal"; }
    std::string spec_file() const { return path + "/experiment.yaml"; }
};

/// Finds or makes the experiment's directory (mode 0700). With `fresh` it is one that was not
/// there: <name>, <name>-2, ….
/// Errors: InvalidInput, when the name can't be a directory's; System, naming the path.
Result<ExperimentDir> prepare_experiment_dir(const ExperimentSpec& spec, bool fresh);

/// Ok when `spec` may go on with what the directory holds.
/// Errors: Conflict, naming the key that differs and the ways out; what load_spec() says.
Status check_continues(const ExperimentDir& directory, const ExperimentSpec& spec);

/// Writes `content` to `path` (mode 0600) so that a reader sees the old or the new file whole.
/// `durable`: it is on disk afterwards.
/// Errors: System, naming the path.
Status replace_file(const std::string& path, const std::string& content, bool durable);

}  // namespace muster
