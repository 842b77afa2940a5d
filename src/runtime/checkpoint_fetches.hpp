// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_fetches - checkpoints that come from other nodes with their trials, and the other
// nodes' questions for those that lie here. One question of a fetch is open at a time, so that
// nothing piles up at the head, through which all of it passes.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "checkpoint/peer_words.hpp"
#include "protocol/agent_commands.hpp"
#include "protocol/agent_events.hpp"
#include "protocol/launch.hpp"
#include "runtime/files_worker.hpp"

namespace muster {

enum class FetchEnd : std::uint8_t {
    /// It lies here, whole.
    There,
    /// It can't be had from where it lies.
    Unusable,
    /// It can't be written here.
    FailedHere,
};

class CheckpointFetches {
  public:
    using Say = std::function<void(const PeerWord& word, TimePoint now)>;
    using Done = std::function<
        void(const MemberKey& key, FetchEnd end, const std::string& why, TimePoint now)>;

    /// `files` outlives it.
    CheckpointFetches(FilesWorker& files, Say say, Done done)
        : files_(files),
          say_(std::move(say)),
          done_(std::move(done)) {}

    /// Fetches what the member resumes from. `done` follows, unless it is given up.
    /// REQUIRES: the plan says from where.
    void begin(const MemberKey& member, const CheckpointPlan& plan, TimePoint now);
    void give_up(const MemberKey& member);

    void hear(const HandFromPeer& heard, TimePoint now);

    /// A fetch that hears nothing for too long ends.
    void tick(TimePoint now);
    TimePoint next_deadline() const;

  private:
    struct Fetch {
        MemberKey member;
        FetchKey key;
        NodeId from;
        std::string directory;
        /// Where it is written to.
        std::string place;
        std::vector<CheckpointEntry> entries;
        /// What is asked for next: from `offset` on of the entry with this index.
        std::size_t next = 0;
        std::int64_t offset = 0;
        std::vector<FilePiece> asked;
        TimePoint due;
    };

    void ask(Fetch& fetch, const PeerMessage& question, TimePoint now);
    void ask_pieces(Fetch& fetch, TimePoint now);
    void take(Fetch& fetch, Entries entries, TimePoint now);
    void take(Fetch& fetch, Pieces pieces, TimePoint now);
    void end(std::uint64_t id, FetchEnd end, const std::string& why, TimePoint now);
    /// Does `job` beside the loop; then, if it went well and the fetch is still wanted, `next`.
    void work(
        const Fetch& fetch,
        std::function<Status()> job,
        std::function<void(Fetch&, TimePoint now)> next
    );
    void answer(NodeId from, const std::string& directory, const PeerMessage& question);

    FilesWorker& files_;
    Say say_;
    Done done_;
    std::map<std::uint64_t, Fetch> fetches_;
    std::uint64_t last_ = 0;
};

}  // namespace muster
