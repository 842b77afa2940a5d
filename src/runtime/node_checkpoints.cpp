// SPDX-License-Identifier: Apache-2.0

#include "runtime/node_checkpoints.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

/// Network file systems may show a new directory late.
constexpr Duration kLookInterval = 500ms;
constexpr Duration kLookPatience = 10s;
/// How long a member's end waits for what it saved, on storage that does not answer.
constexpr Duration kKeepPatience = 1min;
/// How long the end of a run waits for what is being removed.
constexpr Duration kRemovePatience = 10s;

}  // namespace

NodeCheckpoints::NodeCheckpoints(ReportServer& reports, Tell tell, Start start)
    : reports_(reports),
      tell_(std::move(tell)),
      start_(std::move(start)),
      fetches_(
          files_,
          [this](const PeerWord& word, TimePoint now) { tell_(word, now); },
          [this](const MemberKey& key, FetchEnd end, const std::string& why, TimePoint now) {
              fetched(key, end, why, now);
          }
      ) {}

NodeCheckpoints::~NodeCheckpoints() {
    files_.finish(kRemovePatience);
}

// --- before the start ---

void NodeCheckpoints::launch(const LaunchPlan& plan, TimePoint now) {
    MemberCheckpoints& member = members_[plan.key];
    member.directory = plan.checkpoints.directory;
    member.next = std::make_shared<std::uint32_t>(plan.checkpoints.next);
    if (!plan.checkpoints.resume_from) {
        start_(plan);
        return;
    }
    member.plan = plan;
    if (plan.checkpoints.fetch_from) {
        fetches_.begin(plan.key, plan.checkpoints, now);
        return;
    }
    member.look_until = now + kLookPatience;
    look(plan.key);
}

void NodeCheckpoints::look(const MemberKey& key) {
    due_.erase(key);
    const MemberCheckpoints& member = members_.at(key);
    files_.post(
        FilesWorker::Lane::Prompt,
        [this,
         key,
         directory = member.directory,
         number = member.plan->checkpoints.resume_from.value_or(0)]() -> FilesWorker::Then {
            const Presence presence = find_checkpoint(directory, number);
            return [this, key, presence](TimePoint now) { looked(key, presence, now); };
        }
    );
}

void NodeCheckpoints::looked(const MemberKey& key, Presence presence, TimePoint now) {
    const auto found = members_.find(key);
    if (found == members_.end() || !found->second.plan) {
        return;
    }
    if (presence == Presence::There) {
        begin(key);
    } else if (now < found->second.look_until) {
        due_[key] = now + kLookInterval;
    } else if (presence == Presence::NotThere) {
        unusable(key, "it is not in " + found->second.directory, now);
    } else {
        not_started(key, "cannot read " + found->second.directory, now);
    }
}

void NodeCheckpoints::begin(const MemberKey& key) {
    MemberCheckpoints& member = members_.at(key);
    const std::optional<LaunchPlan> plan = std::exchange(member.plan, std::nullopt);
    start_(*plan);
}

void NodeCheckpoints::fetched(
    const MemberKey& key,
    FetchEnd end,
    const std::string& why,
    TimePoint now
) {
    const auto found = members_.find(key);
    if (found == members_.end() || !found->second.plan) {
        return;
    }
    switch (end) {
        case FetchEnd::There:
            found->second.fetched = found->second.plan->checkpoints.resume_from;
            begin(key);
            break;
        case FetchEnd::Unusable:
            unusable(key, why, now);
            break;
        case FetchEnd::FailedHere:
            not_started(key, why, now);
            break;
    }
}

void NodeCheckpoints::unusable(const MemberKey& key, const std::string& why, TimePoint now) {
    const std::uint32_t number = members_.at(key).plan->checkpoints.resume_from.value_or(0);
    tell_(CheckpointUnusable{key, number, why}, now);
    not_started(key, fmt::format("{} can't be used: {}", checkpoint_name(number), why), now);
}

/// That it did not start is nobody's failure: it is tried again, perhaps elsewhere.
void NodeCheckpoints::not_started(const MemberKey& key, const std::string& why, TimePoint now) {
    fetches_.give_up(key);
    reports_.forget(key);
    due_.erase(key);
    members_.erase(key);
    tell_(MemberEnded{key, {EndCause::Lost, 0, "not started: " + why}, {}, ""}, now);
}

bool NodeCheckpoints::give_up(const MemberKey& key, TimePoint now) {
    const auto found = members_.find(key);
    if (found == members_.end() || !found->second.plan) {
        return false;
    }
    not_started(key, "it was asked to end before", now);
    return true;
}

// --- while it runs ---

void NodeCheckpoints::keep(const ReportServer::CheckpointAsked& asked) {
    const auto found = members_.find(asked.key);
    if (found == members_.end()) {
        reports_.refuse_checkpoint(asked.ticket, "this attempt is over");
        return;
    }
    ++found->second.under_way;
    files_.post(
        FilesWorker::Lane::Prompt,
        [this, asked, directory = found->second.directory, next = found->second.next](
        ) -> FilesWorker::Then {
            const Result<KeptDirectory> result = keep_checkpoint(directory, asked.line.path, *next);
            if (result) {
                *next = result->number + 1;
            }
            return [this, asked, result](TimePoint now) { kept(asked, result, now); };
        }
    );
}

void NodeCheckpoints::kept(
    const ReportServer::CheckpointAsked& asked,
    const Result<KeptDirectory>& kept,
    TimePoint now
) {
    if (!kept) {
        reports_.refuse_checkpoint(asked.ticket, kept.error().message);
    }
    const auto found = members_.find(asked.key);
    if (found == members_.end()) {
        return;
    }
    if (kept) {
        found->second.waiting[kept->number] = asked.ticket;
        tell_(CheckpointArrived{asked.key, kept->number, asked.line.step, kept->bytes}, now);
    }
    --found->second.under_way;
    if (found->second.ended && found->second.under_way == 0) {
        release(asked.key, now);
    }
}

void NodeCheckpoints::answer(const AnswerCheckpoint& durable) {
    const auto member = members_.find(durable.key);
    if (member == members_.end()) {
        return;
    }
    const auto waiting = member->second.waiting.find(durable.number);
    if (waiting != member->second.waiting.end()) {
        reports_.answer_checkpoint(waiting->second, checkpoint_name(durable.number));
        member->second.waiting.erase(waiting);
    }
}

void NodeCheckpoints::remove(const RemoveCheckpoint& dropped) {
    const auto remove_later = [post = files_.poster()](const std::string& gone) {
        post(FilesWorker::Lane::Idle, [gone]() -> FilesWorker::Then {
            remove_whole(gone);
            return {};
        });
    };
    // The name goes in line with what gives names; the rest can wait.
    files_.post(FilesWorker::Lane::Prompt, [dropped, remove_later]() -> FilesWorker::Then {
        const std::string gone = retire_checkpoint(dropped.directory, dropped.number);
        if (!gone.empty()) {
            remove_later(gone);
        }
        return {};
    });
}

// --- at its end ---

std::optional<MemberEnded> NodeCheckpoints::end(MemberEnded ended, TimePoint now) {
    const auto found = members_.find(ended.key);
    if (found != members_.end() && found->second.under_way > 0) {
        found->second.ended = std::move(ended);
        due_[found->first] = now + kKeepPatience;
        return std::nullopt;
    }
    close(ended.key);
    return ended;
}

void NodeCheckpoints::release(const MemberKey& key, TimePoint now) {
    due_.erase(key);
    const MemberEnded ended = *std::exchange(members_.at(key).ended, std::nullopt);
    close(key);
    tell_(ended, now);
}

void NodeCheckpoints::close(const MemberKey& key) {
    const auto found = members_.find(key);
    if (found == members_.end()) {
        return;
    }
    if (found->second.fetched) {
        remove({found->second.directory, *found->second.fetched});
    }
    members_.erase(found);
}

// --- the clock ---

void NodeCheckpoints::tick(TimePoint now) {
    fetches_.tick(now);
    std::vector<MemberKey> due;
    for (const auto& [key, at] : due_) {
        if (at <= now) {
            due.push_back(key);
        }
    }
    for (const MemberKey& key : due) {
        const auto found = members_.find(key);
        if (due_.erase(key) == 0 || found == members_.end()) {
            continue;
        }
        if (found->second.plan) {
            look(key);
        } else if (found->second.ended) {
            release(key, now);
        }
    }
}

TimePoint NodeCheckpoints::next_deadline() const {
    TimePoint next = fetches_.next_deadline();
    for (const auto& [key, at] : due_) {
        next = std::min(next, at);
    }
    return next;
}

}  // namespace muster
