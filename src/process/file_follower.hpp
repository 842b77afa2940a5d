// SPDX-License-Identifier: Apache-2.0
//
// file_follower - reads what a trial adds to a file of its own and finds metrics in it.
//
// It looks from time to time rather than being told by the kernel, which on network file systems
// tells nothing of other hosts. What is in the file when the attempt begins is not read; a file
// that is replaced or cut is read from its beginning.

#pragma once

#include <cstddef>
#include <string>

#include <sys/types.h>

#include "posix/unique_fd.hpp"
#include "process/line_patterns.hpp"

namespace muster {

class FileFollower {
  public:
    /// Remembers how long the file is now, if it is there.
    FileFollower(std::string path, LinePatterns patterns);

    /// Reads at most about `most_bytes` of what is new and appends reports.
    void read(std::size_t most_bytes, PatternReports& reports);

    /// As read(), and the last line may lack an end.
    void finish(std::size_t most_bytes, PatternReports& reports);

    const LinePatterns& patterns() const { return patterns_; }

  private:
    void reopen_if_replaced();

    std::string path_;
    LinePatterns patterns_;
    UniqueFd fd_;
    ino_t inode_ = 0;
    off_t offset_ = 0;
};

}  // namespace muster
