// SPDX-License-Identifier: Apache-2.0
//
// end_watch - what must hold as the time of a run ends: what can't end in time does not start, what
// can does, running trials are warned, and nothing runs on into the end.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/head.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "protocol/facts.hpp"
#include "sim/complaint.hpp"

namespace muster {

class EndWatch {
  public:
    EndWatch(const ExperimentSpec& spec, Complaint& complaint)
        : spec_(spec),
          complaint_(complaint) {}

    void run_begins(const std::vector<Fact>& kept);
    void head_stepped(const Head& head, const Event& event, const Step& step, TimePoint now);
    void check_now(const Head& head, TimePoint now);
    /// Whether a trial with this request may be held back since the time ends.
    bool may_wait(std::uint32_t alternative, TimePoint now) const;

  private:
    struct Seen {
        Duration least = Duration::max();
        Duration most{0};
    };

    void take_end(const Head& head, const AttemptEnded& ended);
    void check_start(const Head& head, TrialId trial, TimePoint now);
    TimePoint stop_at() const;
    /// At least what trials with this request are expected to take; nothing is not known.
    std::optional<Duration> longest(std::uint32_t alternative) const;

    const ExperimentSpec& spec_;
    Complaint& complaint_;
    TimePoint end_ = kNever;
    Duration whole_{0};
    /// Some trial has saved a checkpoint, as far as the present head knows.
    bool any_saved_ = false;
    /// By request, in all runs; and whether the present head has seen some end for certain.
    std::map<std::uint32_t, Seen> seen_;
    std::set<std::uint32_t> seen_in_this_run_;
    /// Attempts that began from nothing, and when; those that were warned.
    std::map<TrialId, TimePoint> fresh_;
    std::map<TrialId, TimePoint> started_;
    std::set<AttemptId> warned_;
};

}  // namespace muster
