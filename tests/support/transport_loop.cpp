// SPDX-License-Identifier: Apache-2.0
//
// The loop around a transport that is under test.

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <poll.h>

#include "support/transport_suite.hpp"

namespace muster {
namespace {

/// For a machine on which much else runs.
constexpr auto kDeadline = std::chrono::seconds{90};
const std::string kMeeting = "meeting ";

}  // namespace

std::vector<std::uint32_t> Rank::others() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (rank != number()) {
            ranks.push_back(rank);
        }
    }
    return ranks;
}

void Rank::send(std::uint32_t to, Lane lane, std::string message) {
    transport_.send(to, lane, std::move(message));
}

void Rank::turn(bool with_bulk, Duration longest) {
    for (ReceivedMessage& message : transport_.receive(with_bulk)) {
        if (message.bytes.rfind(kMeeting, 0) == 0) {
            met_[message.from] = std::stoull(message.bytes.substr(kMeeting.size()));
        } else {
            inbox_[{message.from, message.lane}].push_back(std::move(message));
            // Somebody waits for it.
            longest = Duration{0};
        }
    }
    for (BrokenPair& pair : transport_.take_broken()) {
        broken_.push_back(std::move(pair));
    }
    const Duration wait = std::min(longest, transport_.longest_wait());
    const timespec time{0, std::min<Duration>(wait, std::chrono::milliseconds{900}).count()};
    std::vector<pollfd> fds;
    transport_.add_poll_fds(fds);
    if (::ppoll(fds.data(), fds.size(), &time, nullptr) >= 0) {
        transport_.polled(fds);
    }
}

void Rank::turn_until(
    const std::string& what,
    const std::function<bool()>& condition,
    bool with_bulk
) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error(
                "rank " + std::to_string(number()) + " waits in vain for " + what
            );
        }
        turn(with_bulk);
    }
}

void Rank::turn_until(const std::string& what, const std::function<bool()>& condition) {
    turn_until(what, condition, true);
}

void Rank::turn_without_bulk_until(
    const std::string& what,
    const std::function<bool()>& condition
) {
    turn_until(what, condition, false);
}

ReceivedMessage Rank::next(std::uint32_t from, Lane lane, bool with_bulk) {
    std::deque<ReceivedMessage>& messages = inbox_[{from, lane}];
    turn_until(
        "a message of rank " + std::to_string(from), [&] { return !messages.empty(); }, with_bulk
    );
    ReceivedMessage message = std::move(messages.front());
    messages.pop_front();
    return message;
}

std::size_t Rank::waiting(std::uint32_t from, Lane lane) const {
    const auto place = inbox_.find({from, lane});
    return place == inbox_.end() ? 0 : place->second.size();
}

bool Rank::is_broken(std::uint32_t rank) const {
    return std::any_of(broken_.begin(), broken_.end(), [rank](const BrokenPair& pair) {
        return pair.rank == rank;
    });
}

void Rank::meet(bool with_bulk) {
    ++meetings_;
    const std::string word = kMeeting + std::to_string(meetings_);
    const auto came = [&](std::uint32_t rank) {
        return is_broken(rank) || met_[rank] >= meetings_;
    };
    const std::string what = "the others at meeting " + std::to_string(meetings_);
    if (number() != 0) {
        send(0, Lane::Control, word);
        turn_until(
            what, [&] { return came(0); }, with_bulk
        );
        return;
    }
    turn_until(
        what,
        [&] {
            const std::vector<std::uint32_t> all = others();
            return std::all_of(all.begin(), all.end(), came);
        },
        with_bulk
    );
    for (const std::uint32_t rank : others()) {
        send(rank, Lane::Control, word);
    }
    turn_until(
        "all to hear of the meeting",
        [&] {
            const std::vector<std::uint32_t> all = others();
            return std::all_of(all.begin(), all.end(), [&](std::uint32_t rank) {
                return is_broken(rank) || transport_.unsent(rank) == 0;
            });
        },
        with_bulk
    );
}

std::string Rank::play(const Scenario& scenario) {
    if (size() < scenario.fewest_ranks) {
        return "";
    }
    try {
        scenario.run(*this);
        if (!scenario.lethal) {
            meet();
        }
        // So that what was handed out last is acknowledged.
        turn(true, Duration{0});
    } catch (const std::exception& problem) {
        return scenario.name + ": " + problem.what();
    }
    return "";
}

}  // namespace muster
