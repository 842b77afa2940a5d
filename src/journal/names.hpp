// SPDX-License-Identifier: Apache-2.0
//
// names - the words of the format, each in one place for both directions. They are on disk: none
// may ever change.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "protocol/facts.hpp"

namespace muster::journal {

inline constexpr std::string_view kHeaderKind = "journal";
inline constexpr std::string_view kIndexKind = "index";

/// In the order of Fact's alternatives.
inline constexpr std::array<std::string_view, 14> kFactKinds = {
    "run_started",
    "node_joined",
    "trial_created",
    "attempt_started",
    "result",
    "attempt_ended",
    "trial_ended",
    "run_ended",
    "trial_reopened",
    "trial",
    "checkpoint_kept",
    "checkpoint_dropped",
    "trial_restarted",
    "trial_paused"};

/// In the order of EndCause.
inline constexpr std::array<std::string_view, 8> kCauses = {
    "exited",
    "signalled",
    "spawn_failed",
    "memory_limit",
    "time_limit",
    "report_timeout",
    "stopped",
    "lost"};

/// In the order of RunEnd.
inline constexpr std::array<std::string_view, 7> kRunEnds = {
    "finished",
    "time_budget",
    "fail_fast",
    "cancelled",
    "interrupted",
    "infeasible",
    "nothing_works"};

inline std::string_view kind_of(const Fact& fact) {
    static_assert(std::variant_size_v<Fact> == kFactKinds.size());
    return kFactKinds[fact.index()];
}
inline std::string_view name_of(EndCause cause) {
    return kCauses[static_cast<std::size_t>(cause)];
}
inline std::string_view name_of(RunEnd end) {
    return kRunEnds[static_cast<std::size_t>(end)];
}

/// Whether a text must be told apart from a number that is not finite: "nan", "inf" or "-inf"
/// behind any number of apostrophes.
inline bool looks_non_finite(std::string_view text) {
    while (!text.empty() && text.front() == '\'') {
        text.remove_prefix(1);
    }
    return text == "nan" || text == "inf" || text == "-inf";
}

/// CRC-32 as in gzip and PNG, so that any language's standard library can check it.
std::uint32_t checksum(std::string_view bytes);

}  // namespace muster::journal
