// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "transport/link.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kHeader = 40;

/// Carries what goes out now from one link to the other; returns how many bytes.
std::size_t carry(Link& from, Link& to) {
    std::size_t bytes = 0;
    for (std::string frame = from.next_frame(); !frame.empty(); frame = from.next_frame()) {
        bytes += frame.size();
        EXPECT_TRUE(to.on_frame(frame).ok());
    }
    return bytes;
}

/// Two links that have heard of each other.
struct Pair {
    Link here;
    Link there;

    Pair() {
        here.send(Lane::Control, "hello");
        carry(here, there);
        there.take(Lane::Control);
        carry(there, here);
    }

    /// Both ways, until nothing moves; both take all.
    std::vector<std::string> exchange(Lane lane) {
        std::vector<std::string> taken;
        while (carry(here, there) + carry(there, here) > 0) {
            for (std::string& message : there.take(lane)) {
                taken.push_back(std::move(message));
            }
        }
        return taken;
    }
};

TEST(LinkTest, SmallMessagesShareAFrame) {
    Pair pair;
    pair.here.send(Lane::Control, "one");
    pair.here.send(Lane::Bulk, "");
    pair.here.send(Lane::Control, "two");

    EXPECT_TRUE(pair.there.on_frame(pair.here.next_frame()).ok());

    EXPECT_EQ(pair.here.next_frame(), "");
    EXPECT_THAT(pair.there.take(Lane::Control), ElementsAre("one", "two"));
    EXPECT_THAT(pair.there.take(Lane::Bulk), ElementsAre(""));
    EXPECT_THAT(pair.there.take(Lane::Bulk), IsEmpty());
}

TEST(LinkTest, LongMessageIsCutAndPutTogether) {
    Pair pair;
    const std::string message(3'000'000, 'x');
    pair.here.send(Lane::Bulk, message);

    EXPECT_LE(pair.here.next_frame().size(), Link::kFrame);
    Pair other;
    other.here.send(Lane::Bulk, message);
    EXPECT_EQ(other.exchange(Lane::Bulk), (std::vector{message}));
    EXPECT_EQ(other.here.unsent(), 0U);
}

TEST(LinkTest, NoMoreThanAGreetingGoesOutBeforeThePeerIsHeard) {
    Link here;
    Link there;
    here.send(Lane::Bulk, std::string(100'000, 'x'));

    EXPECT_LE(carry(here, there), Link::kGreeting);
    EXPECT_FALSE(here.can_send());

    // The peer answers at once, though it has not taken anything.
    EXPECT_TRUE(there.owes_much());
    carry(there, here);
    EXPECT_TRUE(here.can_send());
}

TEST(LinkTest, NoMoreThanTheWindowIsUnderWay) {
    Pair pair;
    pair.here.send(Lane::Control, std::string(200'000, 'x'));

    const std::size_t carried = carry(pair.here, pair.there);

    EXPECT_LE(carried, Link::kWindow);
    EXPECT_GT(carried, Link::kWindow - 2'000);
    EXPECT_GT(pair.here.unsent(), 199'999U);
}

TEST(LinkTest, BulkThatIsNotTakenLeavesRoomForControl) {
    Pair pair;
    pair.here.send(Lane::Bulk, std::string(1'000'000, 'x'));
    EXPECT_LE(carry(pair.here, pair.there), Link::kWindow - Link::kControlRoom);
    carry(pair.there, pair.here);
    EXPECT_FALSE(pair.here.can_send());

    for (int i = 0; i < 100; ++i) {
        pair.here.send(Lane::Control, std::string(4'000, 'c'));
        carry(pair.here, pair.there);
        EXPECT_THAT(pair.there.take(Lane::Control), SizeIs(1));
        carry(pair.there, pair.here);
    }

    EXPECT_FALSE(pair.here.can_send());
    EXPECT_THAT(pair.exchange(Lane::Bulk), IsEmpty());
    EXPECT_THAT(pair.there.take(Lane::Bulk), IsEmpty());
}

TEST(LinkTest, ControlOvertakesBulkThatWaits) {
    Pair pair;
    pair.here.send(Lane::Bulk, std::string(30'000, 'x'));
    pair.here.send(Lane::Control, "urgent");

    EXPECT_TRUE(pair.there.on_frame(pair.here.next_frame()).ok());

    EXPECT_THAT(pair.there.take(Lane::Control), ElementsAre("urgent"));
    EXPECT_THAT(pair.there.take(Lane::Bulk), IsEmpty());
}

TEST(LinkTest, AcknowledgementIsOwedForWhatWasTakenOnly) {
    Pair pair;
    pair.here.send(Lane::Bulk, std::string(20'000, 'x'));
    carry(pair.here, pair.there);
    EXPECT_FALSE(pair.there.owes());
    EXPECT_EQ(pair.there.next_frame(), "");

    pair.there.take(Lane::Bulk);

    EXPECT_TRUE(pair.there.owes_much());
    EXPECT_EQ(carry(pair.there, pair.here), kHeader);
    EXPECT_FALSE(pair.there.owes());
    EXPECT_EQ(pair.here.unsent(), 0U);
}

TEST(LinkTest, AcknowledgementTravelsWithAMessage) {
    Pair pair;
    pair.here.send(Lane::Control, "question");
    carry(pair.here, pair.there);
    pair.there.take(Lane::Control);
    pair.there.send(Lane::Control, "answer");

    EXPECT_TRUE(pair.here.on_frame(pair.there.next_frame()).ok());

    EXPECT_EQ(pair.there.next_frame(), "");
    EXPECT_EQ(pair.here.unsent(), 0U);
}

TEST(LinkTest, AbandonedSessionIsSilentAndDeaf) {
    Pair pair;
    pair.there.send(Lane::Control, "old");
    pair.here.abandon(1);
    pair.here.send(Lane::Control, "to nobody");

    EXPECT_EQ(pair.here.next_frame(), "");
    EXPECT_EQ(pair.here.unsent(), 0U);
    carry(pair.there, pair.here);
    EXPECT_THAT(pair.here.take(Lane::Control), IsEmpty());
    EXPECT_FALSE(pair.here.open());
}

TEST(LinkTest, NewerSessionIsNotAbandonedWithAnOlderOne) {
    Pair pair;
    pair.there.begin_anew(2);
    pair.there.send(Lane::Control, "new");
    carry(pair.there, pair.here);

    pair.here.abandon(1);

    EXPECT_THAT(pair.here.take(Lane::Control), ElementsAre("new"));
}

TEST(LinkTest, NewerSessionVoidsTheOlderOneOnBothSides) {
    Pair pair;
    pair.here.send(Lane::Bulk, "from here, old");
    pair.there.send(Lane::Bulk, "from there, old");
    const std::string late = pair.here.next_frame();
    carry(pair.there, pair.here);

    pair.there.begin_anew(7);
    pair.there.send(Lane::Control, "new");
    EXPECT_TRUE(pair.there.on_frame(late).ok());
    carry(pair.there, pair.here);

    EXPECT_EQ(pair.here.session(), 7U);
    EXPECT_THAT(pair.here.take(Lane::Bulk), IsEmpty());
    EXPECT_THAT(pair.here.take(Lane::Control), ElementsAre("new"));
    EXPECT_THAT(pair.there.take(Lane::Bulk), IsEmpty());
}

TEST(LinkTest, WhatOldSessionsLeftUnderWayCountsUntilThePeerIsHeard) {
    Pair pair;
    std::size_t handed_over = 0;
    for (std::uint32_t session = 2; session < 100; ++session) {
        pair.here.send(Lane::Control, std::string(100'000, 'x'));
        for (std::string frame = pair.here.next_frame(); !frame.empty();
             frame = pair.here.next_frame()) {
            handed_over += frame.size();
        }
        pair.here.begin_anew(session);
    }

    EXPECT_LE(handed_over, Link::kWindowOfAllSessions);
    EXPECT_GE(handed_over, Link::kWindow);
}

TEST(LinkTest, BrokenLinkHandsOutWhatCameInWhole) {
    Pair pair;
    pair.here.send(Lane::Bulk, "whole");
    carry(pair.here, pair.there);

    EXPECT_FALSE(pair.there.on_frame("nonsense").ok());
    pair.there.send(Lane::Control, "to nobody");

    EXPECT_TRUE(pair.there.broken());
    EXPECT_EQ(pair.there.next_frame(), "");
    EXPECT_THAT(pair.there.take(Lane::Bulk), ElementsAre("whole"));
    EXPECT_TRUE(pair.there.on_frame("more nonsense").ok());
}

/// Changes one byte of a frame, or its length, and says what is wrong with it.
struct Wrong {
    std::size_t place;
    unsigned char byte;
    std::string why;
};

TEST(LinkTest, FramesThatMakeNoSenseBreakTheLinkWithTheReason) {
    const std::vector<Wrong> wrongs = {
        {0, 'X', "it begins with"},
        {4, 0, "session 0"},
        {8, 9, "number 9 instead of 1"},
        {16, 9, "it got 9 frames of 0"},
        {24, 9, "it acknowledges 9, after 0, of 0"},
        {32, 9, "it acknowledges 9, after 0, of 0"},
        {40, 5, "a part of lane 5"},
        {41, 200, "and 200 bytes, where 3 are left"},
        {41, 2, "a part is cut off"},
    };
    for (const Wrong& wrong : wrongs) {
        Pair pair;
        pair.here.send(Lane::Control, "abc");
        std::string frame = pair.here.next_frame();
        frame[wrong.place] = static_cast<char>(wrong.byte);

        const Status status = pair.there.on_frame(frame);

        ASSERT_FALSE(status.ok()) << wrong.why;
        EXPECT_EQ(status.error().code, ErrorCode::Corrupt);
        EXPECT_THAT(status.error().message, HasSubstr(wrong.why));
    }
}

TEST(LinkTest, PeerThatIgnoresTheWindowIsCutOff) {
    Link there;
    std::string problem;
    // Frames of a peer for which every acknowledgement seems to have come.
    for (std::uint32_t count = 0; problem.empty() && count < 10; ++count) {
        Link here;
        Link answering;
        here.send(Lane::Bulk, "x");
        carry(here, answering);
        carry(answering, here);
        here.send(Lane::Bulk, std::string(100'000, 'x'));
        std::string frame = here.next_frame();
        frame[8] = static_cast<char>(count);
        frame[16] = 0;
        const Status status = there.on_frame(frame);
        problem = status.ok() ? "" : status.error().message;
    }
    EXPECT_THAT(problem, HasSubstr("without acknowledgement"));
}

TEST(LinkTest, RandomBytesNeverDoHarm) {
    RandomStream random(5);
    for (int round = 0; round < 20'000; ++round) {
        Pair pair;
        pair.here.send(Lane::Bulk, std::string(random.below(200), 'x'));
        std::string frame = pair.here.next_frame();
        const std::uint64_t changes = 1 + random.below(4);
        for (std::uint64_t i = 0; i < changes; ++i) {
            frame[random.below(frame.size())] = static_cast<char>(random.below(256));
        }
        frame.resize(random.below(frame.size() + 1));
        const bool ok = pair.there.on_frame(frame).ok();
        EXPECT_EQ(pair.there.broken(), !ok);
        pair.there.take(Lane::Bulk);
        pair.there.next_frame();
    }
}

/// Both sides send, take and change sessions as chance has it; frames wait in between.
class RandomTalk {
  public:
    explicit RandomTalk(std::uint64_t seed) : random_(seed) {}

    void run() {
        for (int step = 0; step < 3'000; ++step) {
            this->step(random_.below(2) == 0 ? 0 : 1);
        }
        for (int quiet = 0; quiet < 3;) {
            const bool moved = deliver(0) + deliver(1) + hand_over(0) + hand_over(1) > 0;
            take(0, true);
            take(1, true);
            quiet = moved ? 0 : quiet + 1;
        }
        for (const std::size_t side : {0U, 1U}) {
            EXPECT_EQ(sides_[side].link.unsent(), 0U);
            EXPECT_EQ(sides_[side].link.session(), session_);
            for (const std::size_t lane : {0U, 1U}) {
                EXPECT_THAT(sides_[1 - side].expected[lane], IsEmpty()) << "side " << side;
            }
        }
    }

  private:
    struct Side {
        Link link;
        std::deque<std::string> frames;
        /// Of the present session, what this side has to receive.
        std::array<std::deque<std::string>, 2> expected;
    };

    void step(std::size_t side) {
        switch (random_.below(12)) {
            case 0:
            case 1:
            case 2:
                send(side);
                break;
            case 3:
                if (random_.below(60) == 0) {
                    begin_anew(side);
                }
                break;
            case 4:
            case 5:
            case 6:
                take(side, random_.below(3) == 0);
                break;
            case 7:
            case 8:
            case 9:
                hand_over(side);
                break;
            default:
                deliver(side);
        }
    }

    void send(std::size_t side) {
        const std::size_t lane = random_.below(2);
        const std::size_t size =
            random_.below(20) == 0 ? random_.below(60'000) : random_.below(400);
        std::string message(size, static_cast<char>('a' + random_.below(26)));
        // What is said in an older session than the other side's is void.
        if (sides_[side].link.session() == session_) {
            sides_[1 - side].expected[lane].push_back(message);
        }
        sides_[side].link.send(lane == 0 ? Lane::Control : Lane::Bulk, std::move(message));
    }

    void begin_anew(std::size_t side) {
        ++session_;
        sides_[side].link.begin_anew(session_);
        for (Side& each : sides_) {
            each.expected = {};
        }
        // So that the other side hears of it.
        sides_[1 - side].expected[0].emplace_back("anew");
        sides_[side].link.send(Lane::Control, "anew");
    }

    std::size_t hand_over(std::size_t side) {
        std::string frame = sides_[side].link.next_frame();
        const std::size_t size = frame.size();
        if (size > 0) {
            sides_[1 - side].frames.push_back(std::move(frame));
        }
        return size;
    }

    std::size_t deliver(std::size_t side) {
        Side& self = sides_[side];
        if (self.frames.empty()) {
            return 0;
        }
        EXPECT_TRUE(self.link.on_frame(self.frames.front()).ok());
        const std::size_t size = self.frames.front().size();
        self.frames.pop_front();
        return size;
    }

    void take(std::size_t side, bool with_bulk) {
        Side& self = sides_[side];
        const bool present = self.link.session() == session_;
        for (const std::size_t lane : {0U, 1U}) {
            if (lane == 1 && !with_bulk) {
                continue;
            }
            for (const std::string& message :
                 self.link.take(lane == 0 ? Lane::Control : Lane::Bulk)) {
                if (!present) {
                    continue;
                }
                ASSERT_FALSE(self.expected[lane].empty());
                EXPECT_TRUE(message == self.expected[lane].front());
                self.expected[lane].pop_front();
            }
        }
    }

    RandomStream random_;
    std::array<Side, 2> sides_;
    std::uint32_t session_ = 1;
};

TEST(LinkTest, NothingIsLostOrChangedWhateverTheOrder) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        RandomTalk(seed).run();
        if (HasFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace muster
