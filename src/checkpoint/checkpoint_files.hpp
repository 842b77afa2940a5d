// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_files - the directories of checkpoints: what is done to them on a node, and in which
// order, so that a process killed at any moment leaves a whole checkpoint or none.
//
// A trial's checkpoints lie in one directory as checkpoint_000001, checkpoint_000002, …; a name
// gets there only by a rename of what is whole and synced, and a name that the journal does not
// know means nothing. Whatever else lies there is left over, and goes before the trial runs again.
// What is to be removed first loses its name, so that a name never holds half a checkpoint.
//
// Every call may take as long as the storage does.

#pragma once

#include <cstdint>
#include <string>

#include "muster/error.hpp"

#include "protocol/launch.hpp"

namespace muster {

struct KeptDirectory {
    std::uint32_t number = 0;
    /// Of all its files together.
    std::int64_t bytes = 0;
};

/// Gives `fresh`, a whole and synced directory in `directory`, the first number from `next` on that
/// is not taken, and makes the name durable.
/// Errors: System.
Result<KeptDirectory>
keep_checkpoint(const std::string& directory, const std::string& fresh, std::uint32_t next);

enum class Presence { There, NotThere, Unknown };

/// Whether the checkpoint is there; looks again at what a network file system remembers. Unknown
/// when the storage does not say, or when `directory` is another user's.
Presence find_checkpoint(const std::string& directory, std::uint32_t number);

/// Takes its name from a checkpoint. What can then be removed at leisure; empty when it was not
/// there.
std::string retire_checkpoint(const std::string& directory, std::uint32_t number);

/// Removes a file or directory with all in it, as far as that goes.
void remove_whole(const std::string& path);

/// Removes whatever lies in the plan's directory and is none of its kept checkpoints.
void remove_leftovers(const CheckpointPlan& plan);

/// With node storage: whether `directory`, or as much of it as is there, is this user's alone, from
/// the part muster-<user> on. In a scratch directory that everybody may write to it may not be.
/// Errors: System, naming the part.
Status check_own_directory(const std::string& directory);

/// Syncs a directory's own entries.
/// Errors: System.
Status sync_directory(const std::string& directory);

/// "cannot <what> '<path>': <the system's text>".
Error file_error(const std::string& what, const std::string& path, int error_number);

}  // namespace muster
