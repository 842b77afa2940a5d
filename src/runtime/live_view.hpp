// SPDX-License-Identifier: Apache-2.0
//
// live_view - the state of a run as others may look at it: <experiment>/live.json, which `muster
// status` and `muster explain` read, also from another machine. Small, whatever the experiment's
// size.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/head.hpp"

namespace muster {

/// A trial that runs, or the first in line of those that wait for the same.
struct LiveTrial {
    TrialId trial;
    std::string state;
    /// Head::explain().
    std::string why;
    std::string config;
    double step = 0;
    /// JSON of its last metrics; empty before the first report.
    std::string metrics;

    friend bool operator==(const LiveTrial&, const LiveTrial&) = default;
};

struct LiveView {
    std::string experiment;
    /// Who runs it.
    std::string host;
    std::int64_t pid = 0;
    std::uint32_t epoch = 0;
    /// Seconds since 1970, UTC: when this was written.
    std::int64_t written = 0;
    /// The experiment's own time, in seconds.
    double experiment_seconds = 0;
    /// Empty while it runs; then how it ended.
    std::string ended;
    /// progress_line-like counts: name and number, zeros left out.
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    std::optional<std::uint64_t> total;
    std::string in_use;
    std::string capacity;
    /// That are up, and of those the ones that are set aside.
    std::uint32_t nodes = 0;
    std::uint32_t nodes_set_aside = 0;
    std::optional<LiveTrial> best;
    /// At most 200; `running_left_out` says how many more there are.
    std::vector<LiveTrial> running;
    std::uint64_t running_left_out = 0;
    std::vector<LiveTrial> waiting;

    friend bool operator==(const LiveView&, const LiveView&) = default;
};

/// What the head says now. The caller adds who and when.
LiveView make_live_view(const Head& head, const std::string& experiment, TimePoint now);

/// One JSON object over a few lines.
std::string to_json(const LiveView& view);

/// Errors: Corrupt, when it is no live view.
Result<LiveView> live_view_from_json(const std::string& json);

/// Reads <experiment_dir>/live.json.
/// Errors: NotFound, when the experiment never ran; System; Corrupt.
Result<LiveView> read_live_view(const std::string& experiment_dir);

}  // namespace muster
