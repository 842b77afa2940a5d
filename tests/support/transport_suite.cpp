// SPDX-License-Identifier: Apache-2.0

#include "support/transport_suite.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/random.hpp"

namespace muster {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

void require(bool condition, const std::string& what) {
    if (!condition) {
        throw std::runtime_error(what);
    }
}

/// So many bytes, other ones for each seed.
std::string pattern(std::size_t size, std::uint64_t seed) {
    std::string bytes(size, '\0');
    std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
    for (std::size_t i = 0; i < size; ++i) {
        if (i % 8 == 0) {
            state ^= state << 13U;
            state ^= state >> 7U;
            state ^= state << 17U;
        }
        bytes[i] = static_cast<char>(static_cast<unsigned char>(state >> (8 * (i % 8))));
    }
    return bytes;
}

std::uint64_t seed_of(std::uint32_t from, std::uint32_t to, Lane lane, std::size_t number) {
    const std::uint64_t pair = std::uint64_t{from} * 64 + to;
    return (pair * 2 + (lane == Lane::Bulk ? 1 : 0)) * 1'000'000 + number;
}

std::size_t size_of(std::uint64_t seed) {
    RandomStream random(seed);
    return random.below(10) == 0 ? random.below(40'000) : random.below(300);
}

void messages_keep_their_order_both_ways_at_once(Rank& rank) {
    constexpr std::size_t kCount = 400;
    constexpr std::array kLanes = {Lane::Control, Lane::Bulk};
    for (std::size_t number = 0; number < kCount; ++number) {
        for (const std::uint32_t other : rank.others()) {
            for (const Lane lane : kLanes) {
                const std::uint64_t seed = seed_of(rank.number(), other, lane, number);
                rank.send(other, lane, pattern(size_of(seed), seed));
            }
        }
        rank.turn(true, Duration{0});
    }
    for (std::size_t number = 0; number < kCount; ++number) {
        for (const std::uint32_t other : rank.others()) {
            for (const Lane lane : kLanes) {
                const std::uint64_t seed = seed_of(other, rank.number(), lane, number);
                const ReceivedMessage message = rank.next(other, lane);
                require(message.bytes == pattern(size_of(seed), seed), "a message came changed");
                require(message.session == 1, "a message came in another session");
            }
        }
    }
}

void messages_of_every_size_arrive_whole(Rank& rank) {
    const std::vector<std::size_t> sizes = {
        0,
        1,
        511,
        512,
        700,
        1'024,
        16'300,
        16'384,
        16'385,
        40'000,
        48'000,
        48'001,
        kMiB,
        64 * kMiB};
    for (const std::uint32_t other : rank.others()) {
        const bool long_ones = rank.number() + other == 1;
        for (std::size_t i = 0; i < sizes.size() - (long_ones ? 0 : 1); ++i) {
            const Lane lane = i % 2 == 0 ? Lane::Bulk : Lane::Control;
            rank.send(other, lane, pattern(sizes[i], seed_of(rank.number(), other, lane, i)));
        }
    }
    for (const std::uint32_t other : rank.others()) {
        const bool long_ones = rank.number() + other == 1;
        for (std::size_t i = 0; i < sizes.size() - (long_ones ? 0 : 1); ++i) {
            const Lane lane = i % 2 == 0 ? Lane::Bulk : Lane::Control;
            const std::string wanted = pattern(sizes[i], seed_of(other, rank.number(), lane, i));
            require(
                rank.next(other, lane).bytes == wanted,
                "a message of " + std::to_string(sizes[i]) + " bytes came changed"
            );
        }
    }
}

void bulk_that_is_not_taken_holds_its_sender_back_and_not_control(Rank& rank) {
    constexpr std::size_t kBulk = 100;
    constexpr std::size_t kSize = 10'000;
    rank.meet(false);
    if (rank.number() != 0) {
        for (std::size_t number = 0; number < kBulk; ++number) {
            rank.send(0, Lane::Bulk, pattern(kSize, number));
        }
        for (std::size_t number = 0; number < 50; ++number) {
            rank.send(0, Lane::Control, "ping " + std::to_string(number));
            require(
                rank.next(0, Lane::Control).bytes == "pong " + std::to_string(number),
                "another answer came"
            );
        }
        require(rank.transport().unsent(0) > kBulk * kSize - 100'000, "bulk went out unasked");
        rank.meet();
        rank.turn_until("bulk to go out", [&] { return rank.transport().unsent(0) == 0; });
        return;
    }
    for (std::size_t number = 0; number < 50; ++number) {
        for (const std::uint32_t other : rank.others()) {
            const std::string ping = rank.next(other, Lane::Control, false).bytes;
            require(ping == "ping " + std::to_string(number), "another question came");
            rank.send(other, Lane::Control, "pong " + std::to_string(number));
        }
    }
    rank.meet(false);
    for (const std::uint32_t other : rank.others()) {
        require(rank.waiting(other, Lane::Bulk) == 0, "bulk was handed out unasked");
    }
    for (const std::uint32_t other : rank.others()) {
        for (std::size_t number = 0; number < kBulk; ++number) {
            require(
                rank.next(other, Lane::Bulk).bytes == pattern(kSize, number), "bulk came changed"
            );
        }
    }
}

void a_message_above_the_window_waits_until_it_is_taken(Rank& rank) {
    rank.meet(false);
    if (rank.number() != 0) {
        rank.send(0, Lane::Bulk, pattern(kMiB, rank.number()));
        rank.meet();
        rank.turn_until("the message to go out", [&] { return rank.transport().unsent(0) == 0; });
        return;
    }
    rank.meet(false);
    for (const std::uint32_t other : rank.others()) {
        require(rank.next(other, Lane::Bulk).bytes == pattern(kMiB, other), "it came changed");
    }
}

void control_overtakes_bulk(Rank& rank) {
    if (rank.number() != 0) {
        rank.send(0, Lane::Bulk, pattern(8 * kMiB, rank.number()));
        rank.turn_until("the peer to take some", [&] {
            return rank.transport().unsent(0) < 8 * kMiB - 100'000;
        });
        rank.send(0, Lane::Control, "urgent");
        rank.turn_until("all to go out", [&] { return rank.transport().unsent(0) == 0; });
        return;
    }
    const std::vector<std::uint32_t> others = rank.others();
    rank.turn_until("urgent messages", [&] {
        return std::all_of(others.begin(), others.end(), [&](std::uint32_t other) {
            const bool urgent = rank.waiting(other, Lane::Control) > 0;
            require(urgent || rank.waiting(other, Lane::Bulk) == 0, "bulk was first");
            return urgent;
        });
    });
    for (const std::uint32_t other : rank.others()) {
        require(rank.next(other, Lane::Control).bytes == "urgent", "another message came");
    }
    for (const std::uint32_t other : rank.others()) {
        require(rank.next(other, Lane::Bulk).bytes.size() == 8 * kMiB, "it came cut");
    }
}

void an_abandoned_rank_is_heard_again_in_a_newer_session(Rank& rank) {
    const std::uint32_t last = rank.size() - 1;
    const std::string bulk = pattern(200'000, 3);
    rank.meet(false);
    if (rank.number() == last) {
        const std::uint32_t session = rank.next(0, Lane::Control).session;
        // Of this much is under way when the other side gives up.
        rank.send(0, Lane::Bulk, bulk);
        rank.send(0, Lane::Control, "old");
        rank.meet(false);
        rank.transport().begin_anew(0, session + 1);
        require(rank.transport().unsent(0) == 0, "an old message outlived its session");
        rank.send(0, Lane::Control, "new");
        rank.send(0, Lane::Bulk, "new bulk");
        const ReceivedMessage welcome = rank.next(0, Lane::Control);
        require(welcome.bytes == "welcome", "what was said between the sessions came");
        require(welcome.session == session + 1, "it came in another session");
        rank.turn_until("all to go out", [&] { return rank.transport().unsent(0) == 0; });
    } else if (rank.number() == 0) {
        rank.send(last, Lane::Control, "begin");
        const std::uint32_t session = rank.next(last, Lane::Control, false).session;
        rank.meet(false);
        rank.transport().abandon(last, session);
        const ReceivedMessage hello = rank.next(last, Lane::Control);
        require(hello.bytes == "new" && hello.session == session + 1, "an old message came");
        require(rank.next(last, Lane::Bulk).bytes == "new bulk", "old bulk came");
        rank.send(last, Lane::Control, "welcome");
        rank.turn_until("all to go out", [&] { return rank.transport().unsent(last) == 0; });
    } else {
        rank.meet();
    }
}

void a_newer_session_voids_what_was_under_way_both_ways(Rank& rank) {
    const std::uint32_t last = rank.size() - 1;
    rank.meet(false);
    if (rank.number() == last) {
        const std::uint32_t session = rank.next(0, Lane::Control, false).session;
        rank.send(0, Lane::Bulk, pattern(100'000, 1));
        rank.meet(false);
        rank.transport().begin_anew(0, session + 3);
        rank.send(0, Lane::Control, "anew");
        const ReceivedMessage answer = rank.next(0, Lane::Control);
        require(answer.bytes == "answer" && answer.session == session + 3, "it is not of now");
        require(rank.waiting(0, Lane::Bulk) == 0, "old bulk came");
    } else if (rank.number() == 0) {
        rank.send(last, Lane::Control, "begin");
        rank.send(last, Lane::Bulk, pattern(100'000, 2));
        rank.meet(false);
        require(rank.next(last, Lane::Control, false).bytes == "anew", "another message came");
        rank.send(last, Lane::Control, "answer");
        rank.turn_until("all to go out", [&] { return rank.transport().unsent(last) == 0; });
        require(rank.waiting(last, Lane::Bulk) == 0, "old bulk came");
    } else {
        rank.meet();
    }
}

/// All know all, so that each can find out what becomes of each.
void talk_with_all(Rank& rank) {
    for (const std::uint32_t other : rank.others()) {
        rank.send(other, Lane::Control, "hello");
    }
    for (const std::uint32_t other : rank.others()) {
        require(rank.next(other, Lane::Control).bytes == "hello", "another message came");
    }
    rank.meet();
}

void answer_until_told(Rank& rank) {
    while (true) {
        const std::string word = rank.next(0, Lane::Control).bytes;
        if (word == "done") {
            return;
        }
        rank.send(0, Lane::Control, word);
    }
}

/// Rank 0 goes on with all who are left.
void ask_all(Rank& rank) {
    for (std::size_t number = 0; number < 20; ++number) {
        for (const std::uint32_t other : rank.others()) {
            if (!rank.is_broken(other)) {
                rank.send(other, Lane::Control, std::to_string(number));
                require(
                    rank.next(other, Lane::Control).bytes == std::to_string(number),
                    "another answer came"
                );
            }
        }
    }
}

void dismiss_all(Rank& rank) {
    for (const std::uint32_t other : rank.others()) {
        rank.send(other, Lane::Control, "done");
    }
    rank.turn_until("all to hear of the end", [&] {
        const std::vector<std::uint32_t> others = rank.others();
        return std::all_of(others.begin(), others.end(), [&](std::uint32_t other) {
            return rank.is_broken(other) || rank.transport().unsent(other) == 0;
        });
    });
}

void the_others_learn_of_a_death_and_go_on(Rank& rank) {
    talk_with_all(rank);
    const std::uint32_t last = rank.size() - 1;
    if (rank.number() == last) {
        rank.send(0, Lane::Control, "last words");
        rank.turn_until("them to go out", [&] { return rank.transport().unsent(0) == 0; });
        rank.powers().kill(last);
        rank.powers().play_dead();
        return;
    }
    if (rank.number() == 0) {
        require(rank.next(last, Lane::Control).bytes == "last words", "another message came");
    }
    rank.turn_until("word of the death", [&] { return rank.is_broken(last); });
    require(rank.broken().size() == 1, "somebody else was taken for dead");
    rank.send(last, Lane::Control, "to nobody");
    require(rank.transport().unsent(last) == 0, "a message to the dead was kept");
    if (rank.number() == 0) {
        ask_all(rank);
        require(rank.broken().size() == 1, "somebody else was taken for dead");
        dismiss_all(rank);
    } else {
        answer_until_told(rank);
    }
}

/// Turns until nothing of what waits for `to` moves any more.
void turn_until_stuck(Rank& rank, std::uint32_t to) {
    std::size_t before = 0;
    for (int quiet = 0; quiet < 20;) {
        rank.turn(true, std::chrono::milliseconds{5});
        const std::size_t now = rank.transport().unsent(to);
        quiet = now == before ? quiet + 1 : 0;
        before = now;
    }
}

void a_backlog_for_a_dying_rank_leaves_the_others_alive(Rank& rank) {
    rank.meet();
    if (rank.number() != 0) {
        // The even ones do not take anything in, the odd ones do, and die in the midst of it.
        if (rank.number() % 2 == 0) {
            rank.send(0, Lane::Control, "ready");
            rank.turn_until("that to go out", [&] { return rank.transport().unsent(0) == 0; });
            rank.powers().play_dead();
        } else {
            rank.send(0, Lane::Control, "ready");
            rank.turn_until("the end", rank.powers().is_dead);
        }
        return;
    }
    for (const std::uint32_t victim : rank.others()) {
        rank.next(victim, Lane::Control);
    }
    for (const std::uint32_t victim : rank.others()) {
        for (std::size_t number = 0; number < 4'000; ++number) {
            rank.send(victim, number % 2 == 0 ? Lane::Bulk : Lane::Control, pattern(200, number));
        }
        rank.send(victim, Lane::Bulk, pattern(16 * kMiB, victim));
        if (victim % 2 == 0) {
            turn_until_stuck(rank, victim);
        } else {
            rank.turn_until("some to go out", [&] {
                return rank.transport().unsent(victim) < 15 * kMiB;
            });
        }
        rank.powers().kill(victim);
        rank.turn_until("word of the death", [&] {
            rank.send(victim, Lane::Control, "still there?");
            return rank.is_broken(victim);
        });
    }
    require(rank.broken().size() == rank.others().size(), "somebody was told twice");
}

}  // namespace

const std::vector<Scenario>& transport_scenarios() {
    static const std::vector<Scenario> scenarios = {
        {"order", messages_keep_their_order_both_ways_at_once},
        {"sizes", messages_of_every_size_arrive_whole},
        {"held_bulk", bulk_that_is_not_taken_holds_its_sender_back_and_not_control},
        {"above_window", a_message_above_the_window_waits_until_it_is_taken},
        {"overtaking", control_overtakes_bulk},
        {"abandoned", an_abandoned_rank_is_heard_again_in_a_newer_session, false, 2},
        {"newer_session", a_newer_session_voids_what_was_under_way_both_ways, false, 2},
        {"death", the_others_learn_of_a_death_and_go_on, true, 2},
        {"backlog", a_backlog_for_a_dying_rank_leaves_the_others_alive, true, 2},
    };
    return scenarios;
}

}  // namespace muster
