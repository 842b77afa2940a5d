// SPDX-License-Identifier: Apache-2.0
//
// report_line - the lines of the report protocol: what a trial can say and what it is answered.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/error.hpp"
#include "muster/value.hpp"

#include "base/time.hpp"
#include "protocol/messages.hpp"

namespace muster {

inline constexpr int kReportProtocol = 1;

/// The longest line, without its newline.
inline constexpr std::size_t kMaxReportLine = std::size_t{1} << 20U;

struct HelloLine {
    std::int64_t protocol = 0;
    MemberKey key;

    friend bool operator==(const HelloLine&, const HelloLine&) = default;
};

struct ReportLine {
    /// At least one; groups are joined with '/'.
    std::vector<ValueMember> metrics;
    bool wait = false;

    friend bool operator==(const ReportLine&, const ReportLine&) = default;
};

struct ConfigLine {
    friend bool operator==(const ConfigLine&, const ConfigLine&) = default;
};

/// A checkpoint lies whole and synced in the trial's checkpoint directory.
struct CheckpointLine {
    /// The name of its directory there: ".new-" and more, no '/'.
    std::string path;
    /// Finite.
    std::optional<double> step;

    friend bool operator==(const CheckpointLine&, const CheckpointLine&) = default;
};

using TrialLine = std::variant<HelloLine, ReportLine, ConfigLine, CheckpointLine>;

/// Reads one line of a trial. Errors: Corrupt for what means nothing, NotSupported for what a later
/// version will know; the message says what was wrong.
Result<TrialLine> read_trial_line(std::string_view line);

/// "00042" and "1.7" as a key. Errors: Corrupt, naming the text.
Result<MemberKey>
parse_member(std::string_view trial, std::string_view attempt, std::int64_t member);

/// What a trial is told, each one whole line. `line` is the number, from 1, of the line that is
/// answered.
std::string welcome_line();
std::string decision_line(std::uint64_t line, bool stop);
std::string config_line(std::uint64_t line, std::string_view config_json);
std::string checkpoint_line(std::uint64_t line, std::string_view name);
std::string error_line(std::uint64_t line, std::string_view text, bool closed);
std::string stop_line();
std::string warning_line(Duration left);

}  // namespace muster
