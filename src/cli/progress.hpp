// SPDX-License-Identifier: Apache-2.0
//
// progress - what a run looks like to whoever watches it, as lines of text. Pure: the head and the
// time in, lines out.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/head.hpp"

namespace muster {

/// What a frame needs to know besides the head.
struct ProgressOptions {
    std::string name;
    std::optional<ObjectiveSpec> objective;
    /// Of the terminal, in characters and lines.
    std::size_t width = 80;
    std::size_t height = 24;
    /// Trials that were in a final state when this run began, and when it began: for the estimate.
    std::uint64_t done_before = 0;
    TimePoint began;
};

/// " on 3 nodes, 1 set aside"; nothing for one node.
std::string on_nodes(std::uint32_t nodes, std::uint32_t set_aside);

/// "2 running, 1 failed": every state that some trial is in.
std::string format_counts(const HeadSummary& summary);

/// How long the rest takes at the pace so far; nothing when that can't be said.
std::optional<Duration>
time_left(const HeadSummary& summary, const ProgressOptions& options, TimePoint now);

/// "12/64 done, 8 running, 1 failed; best accuracy 0.9722 by 00007": one line for a log.
std::string progress_line(const Head& head, const ProgressOptions& options);

/// The whole table for a terminal: bar and time left, counts, resources, best, running trials. At
/// most options.height - 1 lines, none wider than options.width.
std::vector<std::string>
progress_frame(const Head& head, const ProgressOptions& options, TimePoint now);

/// "0.9722": six digits that count.
std::string format_metric(const Value& value);

/// "lr=0.00263586 hidden=64": as to_text(config), with six digits that count.
std::string format_config(const Config& config);

/// "accuracy=0.9722 loss=0.11".
std::string format_metrics(const TrialResult& result);

/// "cpu 3/4, gpu 1/2, memory 1GiB/16GiB": in use of what there is, leaving out what there is not.
std::string format_use(const ResourceSet& in_use, const ResourceSet& capacity);

/// "best 00007: accuracy 0.9722 at step 20 with lr=0.01 hidden=64"; empty without one.
std::string best_line(const Head& head, const std::optional<ObjectiveSpec>& objective);

}  // namespace muster
