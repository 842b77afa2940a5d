// SPDX-License-Identifier: Apache-2.0
//
// launch - how to run one member: everything that a keeper needs to know, decided by the agent.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/experiment.hpp"

#include "base/time.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// A file to write before the member starts; directories on the way are made.
struct FileToWrite {
    std::string path;
    std::string content;

    friend bool operator==(const FileToWrite&, const FileToWrite&) = default;
};

/// Where a member's checkpoints lie and what of them is there.
struct CheckpointPlan {
    /// MUSTER_CHECKPOINT_DIR; checkpoints are its directories checkpoint_<number>.
    std::string directory;
    /// As in Start.
    std::vector<std::uint32_t> kept;
    std::optional<std::uint32_t> resume_from;
    std::optional<NodeId> fetch_from;
    std::uint32_t next = 1;

    friend bool operator==(const CheckpointPlan&, const CheckpointPlan&) = default;
};

/// "checkpoint_000007"
std::string checkpoint_name(std::uint32_t number);

struct LaunchPlan {
    MemberKey key;
    /// argv[0] is looked up on the member's PATH when it holds no '/'.
    std::vector<std::string> argv;
    /// Runs this function of the program in place of argv, in a process forked from the keeper.
    std::string function;
    /// On top of the base environment of trials.
    std::vector<EnvironmentVariable> env;
    std::string workdir;
    std::vector<FileToWrite> files;
    /// The node-local file among `files` that goes when the member has ended (params.json).
    std::string remove_at_end;
    std::string trial_dir;
    /// Make trial_dir before the start; otherwise only when output or a file is written there.
    bool make_trial_dir = false;
    OutputMode output = OutputMode::File;
    /// For File and Pty: appended to, made when the first byte comes. For Stream: the node's file.
    std::string output_path;
    /// Operating-system numbers of the hardware threads to run on; empty binds to nothing.
    std::vector<std::uint32_t> processing_units;
    /// 0 is no limit.
    std::int64_t memory_limit_bytes = 0;
    Duration grace{0};
    /// Lines of output (or of files) that are reports. Paths are filled in.
    std::vector<MetricPattern> metrics;
    CheckpointPlan checkpoints;

    friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

}  // namespace muster
