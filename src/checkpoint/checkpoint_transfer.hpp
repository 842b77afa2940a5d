// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_transfer - the files of a checkpoint on their way from one node to another: reading
// them here, writing them there. What has come lies under a hidden name; it gets the checkpoint's
// only when it is whole and synced.
//
// Every call may take as long as the storage does.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "checkpoint/peer_words.hpp"

namespace muster {

/// The owner's answer: Entries, Pieces or NoCheckpoint. `directory` is the trial's here.
PeerMessage answer_peer(const std::string& directory, const PeerMessage& asked);

/// An empty place for what comes, in the trial's directory, which is made. Its path.
/// Errors: System.
Result<std::string> begin_fetch(const std::string& directory, std::uint32_t number);

/// Makes directories, links and empty files.
/// Errors: System.
Status write_entries(const std::string& place, const std::vector<CheckpointEntry>& entries);

/// Writes the pieces, which `bytes` holds one after the other.
/// Errors: System; Corrupt when `bytes` is of another size.
Status write_pieces(
    const std::string& place,
    const std::vector<FilePiece>& pieces,
    const std::string& bytes
);

/// Everything came: syncs it and gives it its name, in place of what had that before.
/// Errors: System.
Status finish_fetch(
    const std::string& directory,
    std::uint32_t number,
    const std::string& place,
    const std::vector<CheckpointEntry>& entries
);

}  // namespace muster
