// SPDX-License-Identifier: Apache-2.0
//
// simulated_checkpoints - a simulated node's part in checkpoints, as runtime/node_checkpoints.hpp
// has it: what a member saves, what it goes on from, what is fetched from another node and what is
// removed. Writing takes no time here; a checkpoint comes from another node in pieces.

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "sim/simulated_node.hpp"

namespace muster {

/// A question for a piece of a checkpoint, or the answer to one.
struct PeerPiece {
    enum class Kind { Asked, Given, NotThere };

    Kind kind = Kind::Asked;
    std::uint32_t number = 0;
    std::uint32_t piece = 0;
    SavedState state;
};

namespace {

constexpr std::uint32_t kPieces = 3;
/// Without a word of the other node.
constexpr Duration kPatience = std::chrono::minutes{2};
constexpr std::int32_t kContinueMe = 75;

std::string encode(const PeerPiece& piece) {
    return fmt::format(
        "{} {} {} {} {} {} {} {}",
        static_cast<int>(piece.kind),
        piece.number,
        piece.piece,
        piece.state.trial.value,
        piece.state.attempt.epoch,
        piece.state.attempt.number,
        piece.state.reports_made,
        piece.state.done.count()
    );
}

PeerPiece decode(const std::string& text) {
    PeerPiece piece;
    int kind = 0;
    Duration::rep done = 0;
    std::istringstream(text) >> kind >> piece.number >> piece.piece >> piece.state.trial.value >>
        piece.state.attempt.epoch >> piece.state.attempt.number >> piece.state.reports_made >> done;
    piece.kind = static_cast<PeerPiece::Kind>(kind);
    piece.state.done = Duration{done};
    return piece;
}

}  // namespace

/// What a crash between a fact and a removal has left behind, or between a checkpoint and its fact.
void SimulatedNode::clean(const LaunchPlan& plan) {
    const auto found = storage_->directories().find(plan.checkpoints.directory);
    if (found == storage_->directories().end()) {
        return;
    }
    const std::vector<std::uint32_t>& kept = plan.checkpoints.kept;
    std::vector<std::uint32_t> left;
    for (const auto& entry : found->second) {
        if (std::find(kept.begin(), kept.end(), entry.first) == kept.end()) {
            left.push_back(entry.first);
        }
    }
    for (const std::uint32_t number : left) {
        remove_files(plan.checkpoints.directory, number);
    }
}

void SimulatedNode::remove_files(const std::string& directory, std::uint32_t number) {
    if (const SavedState* state = storage_->find(directory, number)) {
        touches_.push_back(
            {CheckpointTouch::Kind::Removed, state->trial, number, state->attempt, std::nullopt}
        );
        storage_->remove(directory, number);
    }
}

void SimulatedNode::lose_disk() {
    for (const std::string& directory : own_directories_) {
        storage_->remove_all(directory);
    }
    own_directories_.clear();
}

std::vector<CheckpointTouch> SimulatedNode::take_touches() {
    return std::exchange(touches_, {});
}

bool SimulatedNode::resume(const MemberKey& key, TimePoint now) {
    SimulatedMember& member = members_.at(key);
    member.origin = now;
    const std::optional<std::uint32_t> number = member.checkpoints.resume_from;
    if (!number) {
        return true;
    }
    const SavedState* state = storage_->find(member.checkpoints.directory, *number);
    if (state == nullptr) {
        return false;
    }
    touches_.push_back(
        {CheckpointTouch::Kind::Resumed, key.trial, *number, state->attempt, std::nullopt}
    );
    member.origin = now - state->done;
    member.reports_made = state->reports_made;
    return true;
}

/// That it did not start is nobody's failure.
void SimulatedNode::cannot_resume(const MemberKey& key, const TrialModel& model, TimePoint now) {
    const SimulatedMember& member = members_.at(key);
    const std::uint32_t number = member.checkpoints.resume_from.value_or(0);
    touches_.push_back(
        {CheckpointTouch::Kind::Missing, key.trial, number, {}, member.checkpoints.fetch_from}
    );
    tell_agent(CheckpointUnusable{key, number, "it is not there"}, model, now);
    leave_at(key, {EndCause::Lost, 0, "not started"}, now);
}

void SimulatedNode::save(const MemberKey& key, const TrialModel& model, TimePoint now) {
    SimulatedMember& member = members_.at(key);
    const std::uint32_t number = member.checkpoints.next++;
    const TimePoint worked_until = member.awaited ? member.waits_since : now;
    storage_->write(
        member.checkpoints.directory,
        number,
        {key.trial, key.attempt, member.reports_made, worked_until - member.origin}
    );
    std::optional<double> step;
    if (member.script.says_step) {
        step = member.reports_made;
    }
    tell_agent(CheckpointArrived{key, number, step, member.script.checkpoint_bytes}, model, now);
}

/// REQUIRES: it has just saved.
void SimulatedNode::wait_until_safe(SimulatedMember& member, const MemberKey& key, TimePoint now) {
    member.awaited = member.checkpoints.next - 1;
    member.waits_since = now;
    move_to(key, member, kNever);
}

void SimulatedNode::answer(const AnswerCheckpoint& answered, TimePoint now) {
    touches_.push_back(
        {CheckpointTouch::Kind::Answered, answered.key.trial, answered.number, {}, std::nullopt}
    );
    const auto found = members_.find(answered.key);
    if (found == members_.end() || found->second.awaited != answered.number) {
        return;
    }
    SimulatedMember& member = found->second;
    member.awaited.reset();
    if (member.phase != SimulatedMember::Phase::Running) {
        return;
    }
    // It did nothing meanwhile.
    member.origin = member.origin + (now - member.waits_since);
    if (member.leaves_when_safe) {
        exit(answered.key, {EndCause::Exited, kContinueMe, ""}, now);
    } else {
        go_on(answered.key);
    }
}

void SimulatedNode::warn(const MemberKey& key, const TrialModel& model, TimePoint now) {
    SimulatedMember& member = members_.at(key);
    if (member.phase != SimulatedMember::Phase::Running ||
        member.script.when_warned == WhenWarned::GoesOn) {
        return;
    }
    member.leaves_when_safe = member.script.when_warned == WhenWarned::SavesAndLeaves;
    if (member.awaited) {
        return;
    }
    save(key, model, now);
    if (member.leaves_when_safe) {
        wait_until_safe(member, key, now);
    }
}

// --- from another node ---

void SimulatedNode::ask_piece(const MemberKey& key, const TrialModel& model, TimePoint now) {
    SimulatedMember& member = members_.at(key);
    PeerPiece question;
    question.number = member.checkpoints.resume_from.value_or(0);
    question.piece = member.piece;
    question.state.trial = key.trial;
    move_to(key, member, now + kPatience);
    tell_agent(PeerWord{*member.checkpoints.fetch_from, encode(question)}, model, now);
}

void SimulatedNode::hear_peer(const HandFromPeer& heard, const TrialModel& model, TimePoint now) {
    if (!heard.content) {
        std::vector<MemberKey> in_vain;
        for (const auto& [key, member] : members_) {
            if (member.phase == SimulatedMember::Phase::Fetching &&
                member.checkpoints.fetch_from == heard.from) {
                in_vain.push_back(key);
            }
        }
        for (const MemberKey& key : in_vain) {
            cannot_resume(key, model, now);
        }
        return;
    }
    PeerPiece piece = decode(*heard.content);
    if (piece.kind != PeerPiece::Kind::Asked) {
        hear_piece(heard.from, piece, model, now);
        return;
    }
    const SavedState* state =
        storage_->find(heard.directory + "/" + to_string(piece.state.trial), piece.number);
    piece.kind = state == nullptr ? PeerPiece::Kind::NotThere : PeerPiece::Kind::Given;
    if (state != nullptr) {
        piece.state = *state;
    }
    tell_agent(PeerWord{heard.from, encode(piece)}, model, now);
}

void SimulatedNode::hear_piece(
    NodeId from,
    const PeerPiece& piece,
    const TrialModel& model,
    TimePoint now
) {
    for (auto& [key, member] : members_) {
        if (key.trial != piece.state.trial || member.phase != SimulatedMember::Phase::Fetching ||
            member.checkpoints.resume_from != piece.number || member.piece != piece.piece ||
            member.checkpoints.fetch_from != from) {
            continue;
        }
        const MemberKey whose = key;
        if (piece.kind == PeerPiece::Kind::NotThere) {
            cannot_resume(whose, model, now);
        } else if (++member.piece < kPieces) {
            ask_piece(whose, model, now);
        } else {
            storage_->write(member.checkpoints.directory, piece.number, piece.state);
            member.phase = SimulatedMember::Phase::Starting;
            member.launched = now;
            move_to(whose, member, now + draw(process_delay_));
        }
        return;
    }
}

}  // namespace muster
