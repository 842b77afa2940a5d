// SPDX-License-Identifier: Apache-2.0
//
// peer_words - what two nodes say to each other about a checkpoint that moves, and how it is
// written down: the node that fetches asks, the one that has it answers. Pure.
//
// The fetcher asks for the list of what is in the checkpoint, in pages, then for pieces of its
// files. The owner remembers nothing between two answers. Both ends are one build; yet what can't
// be read is told, never trusted.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.hpp"

namespace muster {

/// Bytes of files, or of names, in one answer; it passes through the head.
inline constexpr std::size_t kFetchBytes = std::size_t{256} << 10U;

struct CheckpointEntry {
    enum class Kind : std::uint8_t { Directory, File, Link };

    Kind kind = Kind::File;
    /// Relative to the checkpoint, no "..", never empty.
    std::string path;
    /// Of a link: where it leads to.
    std::string target;
    std::uint32_t mode = 0;
    std::int64_t bytes = 0;

    friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

/// A part of one file.
struct FilePiece {
    std::string path;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;

    friend bool operator==(const FilePiece&, const FilePiece&) = default;
};

/// Names one fetch, so that an answer to an earlier one is told apart, and the checkpoint.
struct FetchKey {
    std::uint64_t fetch = 0;
    TrialId trial;
    std::uint32_t number = 0;

    friend bool operator==(const FetchKey&, const FetchKey&) = default;
};

// --- fetcher to owner ---

/// The entries from the `skip`th on, directories before what is in them.
struct AskEntries {
    FetchKey key;
    std::uint64_t skip = 0;

    friend bool operator==(const AskEntries&, const AskEntries&) = default;
};

/// At most kFetchBytes in all.
struct AskPieces {
    FetchKey key;
    std::vector<FilePiece> pieces;

    friend bool operator==(const AskPieces&, const AskPieces&) = default;
};

// --- owner to fetcher ---

struct Entries {
    FetchKey key;
    std::vector<CheckpointEntry> entries;
    bool last = false;

    friend bool operator==(const Entries&, const Entries&) = default;
};

/// The pieces that were asked for, one after the other, whole.
struct Pieces {
    FetchKey key;
    std::string bytes;

    friend bool operator==(const Pieces&, const Pieces&) = default;
};

/// The checkpoint is not there, or can't be read.
struct NoCheckpoint {
    FetchKey key;
    std::string why;

    friend bool operator==(const NoCheckpoint&, const NoCheckpoint&) = default;
};

using PeerMessage = std::variant<AskEntries, AskPieces, Entries, Pieces, NoCheckpoint>;

std::string encode_peer_message(const PeerMessage& message);
/// Nothing for bytes that mean nothing.
std::optional<PeerMessage> decode_peer_message(std::string_view bytes);

}  // namespace muster
