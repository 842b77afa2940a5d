// SPDX-License-Identifier: Apache-2.0
//
// node_checkpoints - what a node does with the checkpoints of its members: makes sure that what a
// member resumes from is there before it starts, keeps what its members save, and removes what is
// dropped. The loop never waits for any of it.
//
// What a member asked to be kept before it ended is told before its end.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "protocol/agent_commands.hpp"
#include "protocol/agent_events.hpp"
#include "protocol/launch.hpp"
#include "report/report_server.hpp"
#include "runtime/checkpoint_fetches.hpp"
#include "runtime/files_worker.hpp"

namespace muster {

class NodeCheckpoints {
  public:
    /// For the agent: CheckpointArrived, CheckpointUnusable, PeerWord, and the MemberEnded of
    /// members that were held back or not started.
    using Tell = std::function<void(AgentEvent event, TimePoint now)>;
    /// Everything that the member needs is there.
    using Start = std::function<void(const LaunchPlan& plan)>;

    /// `reports` outlives it.
    NodeCheckpoints(ReportServer& reports, Tell tell, Start start);
    /// Waits a little for what is to be removed.
    ~NodeCheckpoints();
    NodeCheckpoints(const NodeCheckpoints&) = delete;
    NodeCheckpoints& operator=(const NodeCheckpoints&) = delete;

    /// Starts the member, at once unless it resumes from a checkpoint.
    void launch(const LaunchPlan& plan, TimePoint now);

    /// The member is to end. True when it was not started yet: its end is told.
    bool give_up(const MemberKey& key, TimePoint now);

    /// A member saved a checkpoint.
    void keep(const ReportServer::CheckpointAsked& asked);
    /// It is in the journal.
    void answer(const AnswerCheckpoint& durable);

    /// The member ended. Nothing when its end is to wait for what it saved; it is told then.
    std::optional<MemberEnded> end(MemberEnded ended, TimePoint now);

    void remove(const RemoveCheckpoint& dropped);
    void hear(const HandFromPeer& heard, TimePoint now) { fetches_.hear(heard, now); }

    int fd() const { return files_.fd(); }
    void take(TimePoint now) { files_.take(now); }
    void tick(TimePoint now);
    TimePoint next_deadline() const;

  private:
    struct MemberCheckpoints {
        std::string directory;
        /// The number of the next one. Of the jobs alone, which follow each other.
        std::shared_ptr<std::uint32_t> next;
        /// Jobs that keep something.
        unsigned under_way = 0;
        /// Who waits for which number to be in the journal.
        std::map<std::uint32_t, std::uint64_t> waiting;
        /// What came from another node, and is that node's.
        std::optional<std::uint32_t> fetched;
        /// Set until it is started.
        std::optional<LaunchPlan> plan;
        /// When to stop looking for what it resumes from.
        TimePoint look_until = kNever;
        /// Its end, held back.
        std::optional<MemberEnded> ended;
    };

    void look(const MemberKey& key);
    void looked(const MemberKey& key, Presence presence, TimePoint now);
    void begin(const MemberKey& key);
    void fetched(const MemberKey& key, FetchEnd end, const std::string& why, TimePoint now);
    void not_started(const MemberKey& key, const std::string& why, TimePoint now);
    void unusable(const MemberKey& key, const std::string& why, TimePoint now);
    void kept(
        const ReportServer::CheckpointAsked& asked,
        const Result<KeptDirectory>& kept,
        TimePoint now
    );
    void release(const MemberKey& key, TimePoint now);
    void close(const MemberKey& key);

    ReportServer& reports_;
    Tell tell_;
    Start start_;
    FilesWorker files_;
    CheckpointFetches fetches_;
    std::map<MemberKey, MemberCheckpoints> members_;
    /// Members not yet started: when to look again for what they resume from. Members whose end is
    /// held back: when to tell it all the same.
    std::map<MemberKey, TimePoint> due_;
};

}  // namespace muster
