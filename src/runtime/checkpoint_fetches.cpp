// SPDX-License-Identifier: Apache-2.0

#include "runtime/checkpoint_fetches.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "checkpoint/checkpoint_transfer.hpp"

namespace muster {
namespace {

/// Without a word of the other node, or without an end of what is done with it here.
constexpr Duration kPatience = std::chrono::minutes{2};
constexpr std::size_t kMostPieces = 1024;

const FetchKey& key_of(const PeerMessage& message) {
    return std::visit([](const auto& value) -> const FetchKey& { return value.key; }, message);
}

bool is_question(const PeerMessage& message) {
    return std::holds_alternative<AskEntries>(message) ||
           std::holds_alternative<AskPieces>(message);
}

}  // namespace

void CheckpointFetches::begin(const MemberKey& member, const CheckpointPlan& plan, TimePoint now) {
    const std::uint32_t number = plan.resume_from.value_or(0);
    const std::uint64_t id = ++last_;
    Fetch& fetch = fetches_[id];
    fetch.member = member;
    fetch.key = {id, member.trial, number};
    fetch.from = plan.fetch_from.value_or(NodeId{});
    fetch.directory = plan.directory;
    fetch.due = now + kPatience;
    const auto place = std::make_shared<std::string>();
    work(
        fetch,
        [place, directory = plan.directory, number]() -> Status {
            Result<std::string> begun = begin_fetch(directory, number);
            if (!begun) {
                return begun.error();
            }
            *place = std::move(begun).value();
            return Ok{};
        },
        [this, place](Fetch& begun, TimePoint then) {
            begun.place = *place;
            ask(begun, AskEntries{begun.key, 0}, then);
        }
    );
}

void CheckpointFetches::give_up(const MemberKey& member) {
    for (auto fetch = fetches_.begin(); fetch != fetches_.end();) {
        fetch = fetch->second.member == member ? fetches_.erase(fetch) : std::next(fetch);
    }
}

void CheckpointFetches::hear(const HandFromPeer& heard, TimePoint now) {
    if (!heard.content) {
        std::vector<std::uint64_t> lost;
        for (const auto& [id, fetch] : fetches_) {
            if (fetch.from == heard.from) {
                lost.push_back(id);
            }
        }
        for (const std::uint64_t id : lost) {
            end(id, FetchEnd::Unusable, "the node where it lies is gone", now);
        }
        return;
    }
    std::optional<PeerMessage> message = decode_peer_message(*heard.content);
    if (!message) {
        return;
    }
    if (is_question(*message)) {
        answer(heard.from, heard.directory, *message);
        return;
    }
    const auto found = fetches_.find(key_of(*message).fetch);
    if (found == fetches_.end() || !(found->second.key == key_of(*message)) ||
        found->second.from != heard.from) {
        return;
    }
    std::visit(
        Overloaded{
            [&](Entries& entries) { take(found->second, std::move(entries), now); },
            [&](Pieces& pieces) { take(found->second, std::move(pieces), now); },
            [&](const NoCheckpoint& none) { end(found->first, FetchEnd::Unusable, none.why, now); },
            [](const AskEntries&) {},
            [](const AskPieces&) {}},
        *message
    );
}

void CheckpointFetches::answer(
    NodeId from,
    const std::string& directory,
    const PeerMessage& question
) {
    const std::string mine = directory + "/" + to_string(key_of(question).trial);
    files_.post(FilesWorker::Lane::Prompt, [this, from, mine, question]() -> FilesWorker::Then {
        auto content =
            std::make_shared<std::string>(encode_peer_message(answer_peer(mine, question)));
        return [this, from, content](TimePoint now) { say_({from, std::move(*content)}, now); };
    });
}

void CheckpointFetches::ask(Fetch& fetch, const PeerMessage& question, TimePoint now) {
    fetch.due = now + kPatience;
    say_({fetch.from, encode_peer_message(question)}, now);
}

void CheckpointFetches::take(Fetch& fetch, Entries entries, TimePoint now) {
    fetch.due = now + kPatience;
    fetch.entries.insert(fetch.entries.end(), entries.entries.begin(), entries.entries.end());
    const bool last = entries.last;
    work(
        fetch,
        [place = fetch.place, fresh = std::move(entries.entries)] {
            return write_entries(place, fresh);
        },
        [this, last](Fetch& written, TimePoint then) {
            if (last) {
                ask_pieces(written, then);
            } else {
                ask(written, AskEntries{written.key, written.entries.size()}, then);
            }
        }
    );
}

/// Asks for as much as one answer holds; if nothing is missing any more, that is the end.
void CheckpointFetches::ask_pieces(Fetch& fetch, TimePoint now) {
    fetch.asked.clear();
    auto room = static_cast<std::int64_t>(kFetchBytes);
    while (fetch.next < fetch.entries.size() && room > 0 && fetch.asked.size() < kMostPieces) {
        const CheckpointEntry& entry = fetch.entries[fetch.next];
        const std::int64_t bytes = std::min(room, entry.bytes - fetch.offset);
        if (bytes > 0) {
            fetch.asked.push_back({entry.path, fetch.offset, bytes});
            fetch.offset += bytes;
            room -= bytes;
        }
        if (fetch.offset == entry.bytes) {
            ++fetch.next;
            fetch.offset = 0;
        }
    }
    if (!fetch.asked.empty()) {
        ask(fetch, AskPieces{fetch.key, fetch.asked}, now);
        return;
    }
    work(
        fetch,
        [directory = fetch.directory,
         number = fetch.key.number,
         place = fetch.place,
         entries = fetch.entries] { return finish_fetch(directory, number, place, entries); },
        [this](Fetch& whole, TimePoint then) { end(whole.key.fetch, FetchEnd::There, "", then); }
    );
}

void CheckpointFetches::take(Fetch& fetch, Pieces pieces, TimePoint now) {
    fetch.due = now + kPatience;
    work(
        fetch,
        [place = fetch.place, asked = fetch.asked, bytes = std::move(pieces.bytes)] {
            return write_pieces(place, asked, bytes);
        },
        [this](Fetch& written, TimePoint then) { ask_pieces(written, then); }
    );
}

void CheckpointFetches::work(
    const Fetch& fetch,
    std::function<Status()> job,
    std::function<void(Fetch&, TimePoint)> next
) {
    const std::uint64_t id = fetch.key.fetch;
    files_.post(
        FilesWorker::Lane::Prompt,
        [this, id, job = std::move(job), next = std::move(next)]() -> FilesWorker::Then {
            const Status done = job();
            return [this, id, done, next](TimePoint now) {
                const auto found = fetches_.find(id);
                if (found == fetches_.end()) {
                    return;
                }
                if (!done) {
                    end(id, FetchEnd::FailedHere, done.error().message, now);
                    return;
                }
                next(found->second, now);
            };
        }
    );
}

void CheckpointFetches::end(std::uint64_t id, FetchEnd end, const std::string& why, TimePoint now) {
    const auto found = fetches_.find(id);
    if (found != fetches_.end()) {
        const MemberKey member = found->second.member;
        fetches_.erase(found);
        done_(member, end, why, now);
    }
}

void CheckpointFetches::tick(TimePoint now) {
    std::vector<std::uint64_t> late;
    for (const auto& [id, fetch] : fetches_) {
        if (fetch.due <= now) {
            late.push_back(id);
        }
    }
    for (const std::uint64_t id : late) {
        end(id,
            FetchEnd::Unusable,
            fmt::format("the node where it lies said nothing for {}", format_duration(kPatience)),
            now);
    }
}

TimePoint CheckpointFetches::next_deadline() const {
    TimePoint next = kNever;
    for (const auto& [id, fetch] : fetches_) {
        next = std::min(next, fetch.due);
    }
    return next;
}

}  // namespace muster
