// SPDX-License-Identifier: Apache-2.0
//
// writer - appends facts to the journal. The owner's thread turns facts into records; a thread of
// the writer's own puts them on disk and commits them in groups: a commit takes everything that
// came while the one before it ran. The form of the files is in docs/journal.md.
//
// Invariants:
// - records reach the files in the order of append(), state and results each;
// - a record is counted as durable only after fdatasync() of every file that holds it or one
//   before it; one that could not be written stays in memory and is tried again;
// - the files are never locked and never written by anybody else.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "journal/files.hpp"
#include "protocol/facts.hpp"

namespace muster {

struct JournalOptions {
    /// <experiment>/journal; made with mode 0700 when it is not there.
    std::string directory;
    /// The experiment's name, for the segments' headers.
    std::string experiment;
    /// A segment that has grown past this is followed by another. In bytes.
    std::uint64_t segment_bytes = std::uint64_t{32} << 20U;
    /// Records in memory beyond which full() says so. In bytes.
    std::uint64_t limit_bytes = std::uint64_t{64} << 20U;
    /// Results are committed at least this far apart; they hold nothing back.
    Duration results_interval = std::chrono::seconds{1};
    /// How long to wait before what failed is tried again.
    Duration retry_interval = std::chrono::seconds{1};
    /// A commit that takes longer than this is told as a problem.
    Duration slow_after = std::chrono::seconds{5};
    /// What stands between the writer and the disk.
    std::shared_ptr<JournalFiles> files = std::make_shared<JournalFiles>();
    /// The numbers of the first records, from JournalReading of what is there.
    std::uint64_t next_state = 1;
    std::uint64_t next_result = 1;
};

class JournalWriter {
  public:
    /// Opens new segments after those that are there, and starts the thread.
    /// Errors: System, naming the path, when the directory or a first segment can't be made.
    static Result<JournalWriter> open(JournalOptions options);
    ~JournalWriter();
    JournalWriter(JournalWriter&&) noexcept;
    JournalWriter& operator=(JournalWriter&&) noexcept;
    JournalWriter(const JournalWriter&) = delete;
    JournalWriter& operator=(const JournalWriter&) = delete;

    /// Takes `fact` in and returns a sequence: once durable() has reached it, this fact and every
    /// fact of the state before it are on disk. A result returns the sequence of the state so far:
    /// it waits for nothing and holds nothing back. Never blocks, never fails, never drops.
    std::uint64_t append(const Fact& fact, TimePoint at);

    /// The sequence that is on disk.
    std::uint64_t durable() const;

    /// The sequence of the latest append().
    std::uint64_t appended() const;

    /// A descriptor that poll() finds readable after durable() or problem() has changed.
    int fd() const;

    /// Makes fd() unreadable until the next change. Call it before durable().
    void acknowledge();

    /// More waits in memory than the limit: take in no more reports until this is false again.
    bool full() const;

    /// Why records can't be put on disk at the moment; empty while all is well. Of a file system
    /// that does not answer fd() can't tell: ask now and then.
    std::string problem() const;

    /// Puts everything on disk, results too, and ends the thread; waits at most `patience`.
    /// Later calls do nothing.
    /// Errors: System, when records remain that are not on disk, with the reason.
    Status close(Duration patience);

  private:
    struct State;
    explicit JournalWriter(std::shared_ptr<State> state);

    std::shared_ptr<State> state_;
};

}  // namespace muster
