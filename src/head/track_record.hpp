// SPDX-License-Identifier: Apache-2.0
//
// track_record - what came to something and what failed, and where: whether a node is to blame for
// what fails on it, and whether anything works at all. It counts; what follows is in judgement.cpp.
//
// An attempt works when it reports, or ends well. A streak is what failed on a node since an
// attempt worked there; an attempt counts once for each streak that began before it worked. A node
// is suspected when its streak holds at least three trials, attempts have worked elsewhere
// meanwhile, and at the rate at which they failed elsewhere meanwhile a streak of that length would
// be rarer than 1 in 20. So three trials are enough where others succeed, and configs that fail by
// themselves do not blame a node soon. The suspicion is put to the test, since the trials of the
// streak run again elsewhere: when most fail there too, the node was not to blame.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace muster {

/// A failed attempt in words.
struct FailureText {
    /// "exit code 1"
    std::string outcome;
    /// As Ended::last_lines.
    std::string last_lines;
};

/// What failed on one node since something worked there.
struct Streak {
    /// With how many attempts each.
    std::map<TrialId, std::uint32_t> trials;
    TrialId last;
    FailureText last_failure;
    /// Of all nodes, when the streak began.
    std::uint64_t worked_before = 0;
    std::uint64_t failed_before = 0;
    /// See TrackRecord::moment().
    std::uint64_t begun = 0;
    /// Attempts that had worked before the streak began, and have again since.
    std::uint64_t worked_again = 0;
    /// In the streak itself.
    std::uint64_t failed = 0;
};

class TrackRecord {
  public:
    // --- nodes ---

    /// An attempt on the node works. `last` is the moment() at which this was said of it before, 0
    /// for never; to be said again only when the moment is another by now.
    void worked(NodeId node, TrialId trial, std::uint64_t last);
    /// Rises, from 1, when a streak begins.
    std::uint64_t moment() const { return moment_; }
    /// An attempt on the node has failed, and was its trial's own failure as far as is known.
    void failed(NodeId node, TrialId trial, FailureText text);

    /// A node that is to be set aside, if there is one.
    std::optional<NodeId> suspect() const;
    /// nullptr when nothing failed on the node since something worked there.
    const Streak* streak(NodeId node) const;
    /// The node can't be done without: it is not suspected again before some node joins.
    void excuse(NodeId node);

    /// The node is set aside, or was already; each of `reopened` runs again elsewhere. Its streak
    /// is over.
    void set_aside(NodeId node, const std::vector<TrialId>& reopened);
    /// Whether the trial may be reopened once more; a few times are enough for all bad nodes.
    bool may_reopen(TrialId trial) const;
    const std::set<NodeId>& aside() const { return aside_; }
    /// A node that is set aside although most of its trials failed elsewhere too.
    std::optional<NodeId> acquitted() const;
    /// The node is used again.
    void take_back(NodeId node);
    /// The node is gone, or comes anew: nothing is held against it.
    void forget(NodeId node);
    /// Another node is there: none is excused for being needed.
    void excuse_nobody() { excused_.clear(); }

    // --- the experiment ---

    /// Something has worked, in this run or an earlier one.
    void has_worked() { anything_worked_ = true; }
    /// The trial's first attempt of this run starts, or another one.
    void started(TrialId trial);
    /// So many trials, those that were started first in this run, have failed for good, and nothing
    /// has ever worked. 0 when something has. `is_failed` says it of one trial.
    template <class IsFailed>
    std::uint64_t failed_first(const IsFailed& is_failed) {
        if (anything_worked_) {
            return 0;
        }
        while (failed_first_ < order_.size() && is_failed(order_[failed_first_])) {
            ++failed_first_;
        }
        return failed_first_;
    }

  private:
    /// How the trials of a streak fared elsewhere.
    struct Retrial {
        std::uint32_t worked = 0;
        std::uint32_t failed = 0;
    };

    bool is_suspect(const Streak& streak) const;
    void end_retrial(TrialId trial, bool worked);
    void end_streak(NodeId node);

    std::uint64_t moment_ = 1;
    // Attempts.
    std::uint64_t worked_ = 0;
    std::uint64_t failed_ = 0;
    // Of nodes that have one.
    std::map<NodeId, Streak> streaks_;
    // Those whose streak is long enough.
    std::set<NodeId> long_streaks_;
    std::set<NodeId> excused_;
    std::set<NodeId> aside_;
    std::map<NodeId, Retrial> retrials_;
    // Trials that run again, with the node where they failed.
    std::map<TrialId, NodeId> retried_;
    std::map<TrialId, std::uint32_t> reopened_;

    bool anything_worked_ = false;
    // Until something has worked: trials in the order of their first start, and the same as a set.
    std::vector<TrialId> order_;
    std::set<TrialId> seen_;
    std::uint64_t failed_first_ = 0;
};

}  // namespace muster
