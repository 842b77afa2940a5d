// SPDX-License-Identifier: Apache-2.0
//
// outcome - how an attempt ended and what it used.

#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"

namespace muster {

enum class EndCause : std::uint8_t {
    /// The process returned; `code` is its exit status.
    Exited,
    /// A signal ended it; `code` is its number.
    Signalled,
    /// It could not be started; `code` is errno, `detail` says what was tried.
    SpawnFailed,
    /// It used more memory than asked; `detail` is "asked …, used …".
    MemoryLimit,
    /// It ran longer than `time_limit`.
    TimeLimit,
    /// It was silent for longer than `report_timeout`.
    ReportTimeout,
    /// The head asked for its end, and it ended.
    Stopped,
    /// Its node or its keeper was lost, or its agent's run ended, and nobody saw it end; or others
    /// ended it by a signal, as Slurm does when it cancels a job. Not the trial's failure, unless
    /// this happens time after time.
    Lost,
};

struct Outcome {
    EndCause cause = EndCause::Exited;
    std::int32_t code = 0;
    /// More for people: a message, or the last lines of stderr. May be empty.
    std::string detail;

    friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// "exit code 3", "signal 11 (SIGSEGV)", "memory: asked 1GiB, used 1.2GiB", …
std::string to_string(const Outcome& outcome);

/// What an attempt's processes used, all of them together.
struct Usage {
    Duration wall{0};
    Duration cpu{0};
    std::int64_t max_rss_bytes = 0;

    friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace muster
