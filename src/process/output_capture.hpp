// SPDX-License-Identifier: Apache-2.0
//
// output_capture - takes what one member writes to stdout and stderr to where it belongs.
//
// The member writes into a pipe (or a terminal), never into the file itself: so a full disk is our
// trouble and not the trial's, and a silent trial leaves no file. Where nobody has to look at the
// bytes they go from pipe to file inside the kernel. The end of the output is kept for messages.
//
// With OutputMode::Discard nothing is stored; what goes to stderr is still read, for its end alone,
// since "exit code 1" without a word helps nobody.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"
#include "process/line_patterns.hpp"
#include "process/stream_output.hpp"
#include "protocol/launch.hpp"

namespace muster {

class OutputCapture {
  public:
    using Clock = std::chrono::steady_clock;

    /// Opens what `plan` needs. `patterns` is applied to every line. Errors: System.
    static Result<OutputCapture> open(const LaunchPlan& plan, std::optional<LinePatterns> patterns);

    /// What the member gets as its stdout and stderr.
    int stdout_fd() const { return stdout_fd_; }
    int stderr_fd() const { return stderr_fd_; }

    /// Readable when read() has something to do; -1 when there is nothing to capture.
    int poll_fd() const { return reader_.get(); }

    /// Moves on what is there, a bounded piece. Appends reports found in it. False when there was
    /// nothing.
    bool read(PatternReports& reports, Clock::time_point now);

    /// When flush() is due.
    Clock::time_point flush_due() const { return flush_due_; }
    void flush();

    /// Every writer is gone: takes what is left.
    void finish(PatternReports& reports);

    /// Something that a person should know (a full disk), once.
    std::optional<std::string> take_remark();

    /// The last lines of the output, at most 10, as valid UTF-8. After finish().
    std::string tail() const;

    const std::optional<LinePatterns>& patterns() const { return patterns_; }

  private:
    OutputCapture(const LaunchPlan& plan, std::optional<LinePatterns> patterns);

    Status open_pipe();
    Status open_terminal();
    bool splice_some();
    bool copy_some(PatternReports& reports, Clock::time_point now);
    bool open_file();
    void store(std::string_view bytes, Clock::time_point now);
    void write_to_file(std::string_view bytes);
    void give_up_storing(const std::string& problem);
    void keep_tail(std::string_view bytes);

    OutputMode mode_;
    std::string path_;
    std::optional<LinePatterns> patterns_;
    /// The bytes need not come by here: splice.
    bool in_kernel_ = false;
    /// Nothing more is written since it failed, or nothing ever is (Discard).
    bool storing_ = true;

    UniqueFd reader_;
    /// Our copy of the writing end: without it the end of the member would wake us twice.
    UniqueFd writer_;
    int stdout_fd_ = -1;
    int stderr_fd_ = -1;

    UniqueFd file_;
    /// Where this attempt's output begins in the file.
    std::int64_t begin_ = 0;
    std::optional<StreamAppender> stream_;
    /// For the stream, not yet appended.
    std::string pending_;
    Clock::time_point flush_due_ = Clock::time_point::max();
    std::string tail_;
    std::optional<std::string> remark_;
};

/// The last ten lines of `bytes`, or as many as are whole in its last 4 KiB; of a last line that is
/// longer its end. What is not UTF-8 becomes U+FFFD.
std::string last_lines(std::string_view bytes);

}  // namespace muster
