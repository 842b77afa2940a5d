// SPDX-License-Identifier: Apache-2.0
//
// stream_output - the output of many trials in one file a node, with an index.
//
// The file holds chunks of raw bytes one after the other. Beside it, `<file>.index` has one line
// for each chunk, in order of arrival:
//
//     <offset> <length> <trial> <epoch>.<number> <member>\n
//
// in decimal, `trial` without leading zeros. Chunks of one attempt are in its order. Keepers append
// to both with O_APPEND, chunk first: a chunk without a line is one whose keeper was killed in
// between. Lines that can't be read are skipped.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"
#include "protocol/messages.hpp"

namespace muster {

/// Appends one member's output to a node's stream. Files and directories are made by the first
/// append().
class StreamAppender {
  public:
    StreamAppender(std::string path, MemberKey key) : path_(std::move(path)), key_(key) {}

    /// Errors: System (disk full, …), with the path.
    Status append(std::string_view bytes);

  private:
    std::string path_;
    MemberKey key_;
    UniqueFd file_;
    UniqueFd index_;
};

/// All output of `trial` in the stream at `path`, attempts one after the other as they came.
///
/// Errors: NotFound when the stream or its index can't be opened; Corrupt when the file is shorter
/// than its index says.
Result<std::string> read_stream_output(const std::string& path, TrialId trial);

}  // namespace muster
