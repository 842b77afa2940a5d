// SPDX-License-Identifier: Apache-2.0
//
// What a node does with its members' checkpoints, and how one comes from another node: two nodes
// here, on one clock, whose words to each other go through the test.

#include "runtime/node_checkpoints.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr MemberKey kMember{TrialId{1}, AttemptId{1, 7}, MemberId{0}};

std::string make_directory() {
    char path[] = "/tmp/muster-node-checkpoints-XXXXXX";
    return ::mkdtemp(path);
}

std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void make(const std::string& path, const std::string& text = "weights") {
    fs::create_directories(path + "/layers");
    std::ofstream(path + "/layers/first") << text;
}

/// One node: what it does beside its loop, and what came of it.
struct Node {
    Node() { ::mkdir((top + "/run").c_str(), 0700); }
    ~Node() {
        checkpoints.reset();
        fs::remove_all(top);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    LaunchPlan plan() const {
        LaunchPlan plan;
        plan.key = kMember;
        plan.checkpoints.directory = directory;
        return plan;
    }

    template <class Event>
    std::vector<Event> all() const {
        std::vector<Event> found;
        for (const AgentEvent& event : events) {
            if (const auto* wanted = std::get_if<Event>(&event)) {
                found.push_back(*wanted);
            }
        }
        return found;
    }

    std::string top = make_directory();
    std::string root = top + "/scratch";
    std::string directory = root + "/" + to_string(kMember.trial);
    ReportServer reports = std::move(*[this] {
        ::mkdir((top + "/run").c_str(), 0700);
        return ReportServer::listen(top + "/run");
    }());
    std::vector<AgentEvent> events;
    int started = 0;
    std::function<void(const PeerWord&)> on_word = [](const PeerWord&) {};
    std::optional<NodeCheckpoints> checkpoints{
        std::in_place,
        reports,
        [this](AgentEvent event, TimePoint) {
            if (const auto* word = std::get_if<PeerWord>(&event)) {
                on_word(*word);
            }
            events.push_back(std::move(event));
        },
        [this](const LaunchPlan&) { ++started; }};
};

class NodeCheckpointsTest : public ::testing::Test {
  protected:
    /// Lets both nodes work until `reached`, in real time.
    void run_until(const std::function<bool()>& reached) {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (!reached() && std::chrono::steady_clock::now() < deadline) {
            pollfd fds[] = {
                {here.checkpoints->fd(), POLLIN, 0}, {there.checkpoints->fd(), POLLIN, 0}};
            ::poll(fds, 2, 20);
            here.checkpoints->take(now);
            there.checkpoints->take(now);
        }
        EXPECT_TRUE(reached());
    }

    /// What one says the other hears.
    void connect() {
        here.on_word = [this](const PeerWord& word) {
            EXPECT_EQ(word.to, NodeId{1});
            there.checkpoints->hear({NodeId{0}, word.content, there.root}, now);
        };
        there.on_word = [this](const PeerWord& word) {
            EXPECT_EQ(word.to, NodeId{0});
            here.checkpoints->hear({NodeId{1}, word.content, here.root}, now);
        };
    }

    ReportServer::CheckpointAsked asked(const std::string& name) const {
        return {kMember, 77, {name, std::nullopt}};
    }

    LaunchPlan resuming(std::uint32_t number) const {
        LaunchPlan plan = here.plan();
        plan.checkpoints.kept = {number};
        plan.checkpoints.resume_from = number;
        plan.checkpoints.next = number + 1;
        return plan;
    }

    TimePoint now{};
    Node here;
    Node there;
};

TEST_F(NodeCheckpointsTest, AMemberWithoutACheckpointStartsAtOnce) {
    here.checkpoints->launch(here.plan(), now);

    EXPECT_EQ(here.started, 1);
}

TEST_F(NodeCheckpointsTest, WhatAMemberSavesGetsRisingNumbers) {
    here.checkpoints->launch(here.plan(), now);
    make(here.directory + "/.new-a");
    make(here.directory + "/.new-b");

    here.checkpoints->keep(asked(".new-a"));
    here.checkpoints->keep(asked(".new-b"));
    run_until([&] { return here.events.size() == 2; });

    const auto arrived = here.all<CheckpointArrived>();
    EXPECT_EQ(arrived.at(0).number, 1U);
    EXPECT_EQ(arrived.at(1).number, 2U);
    EXPECT_EQ(arrived.at(1).bytes, 7);
    EXPECT_TRUE(fs::exists(here.directory + "/checkpoint_000002"));
}

TEST_F(NodeCheckpointsTest, TheEndOfAMemberComesAfterWhatItSaved) {
    here.checkpoints->launch(here.plan(), now);
    make(here.directory + "/.new-a");
    here.checkpoints->keep(asked(".new-a"));

    const auto over = here.checkpoints->end({kMember, {}, {}, ""}, now);
    EXPECT_FALSE(over.has_value());
    run_until([&] { return here.events.size() == 2; });

    EXPECT_TRUE(std::holds_alternative<CheckpointArrived>(here.events.at(0)));
    EXPECT_TRUE(std::holds_alternative<MemberEnded>(here.events.at(1)));
    EXPECT_TRUE(here.checkpoints->end({kMember, {}, {}, ""}, now).has_value());
}

TEST_F(NodeCheckpointsTest, AnEndDoesNotWaitForEverForStorageThatDoesNotAnswer) {
    here.checkpoints->launch(here.plan(), now);
    make(here.directory + "/.new-a");
    here.checkpoints->keep(asked(".new-a"));
    EXPECT_FALSE(here.checkpoints->end({kMember, {}, {}, ""}, now).has_value());

    now = here.checkpoints->next_deadline();
    EXPECT_LE(now, TimePoint{} + 1min);
    here.checkpoints->tick(now);

    EXPECT_EQ(here.all<MemberEnded>().size(), 1U);
    EXPECT_EQ(here.checkpoints->next_deadline(), kNever);
}

TEST_F(NodeCheckpointsTest, WhatIsResumedFromIsThereBeforeTheStart) {
    make(here.directory + "/checkpoint_000004");

    here.checkpoints->launch(resuming(4), now);
    EXPECT_EQ(here.started, 0);
    run_until([&] { return here.started == 1; });

    EXPECT_THAT(here.events, IsEmpty());
}

TEST_F(NodeCheckpointsTest, WhatDoesNotAppearForTenSecondsIsUnusable) {
    here.checkpoints->launch(resuming(4), now);

    while (here.events.empty() && now < TimePoint{} + 1min) {
        run_until([&] {
            return !here.events.empty() || here.checkpoints->next_deadline() != kNever;
        });
        now = std::max(now, std::min(here.checkpoints->next_deadline(), now + 1min));
        here.checkpoints->tick(now);
    }

    EXPECT_EQ(here.all<CheckpointUnusable>().at(0).number, 4U);
    EXPECT_EQ(here.all<MemberEnded>().at(0).outcome.cause, EndCause::Lost);
    EXPECT_GE(now, TimePoint{} + 10s);
    EXPECT_EQ(here.started, 0);
}

TEST_F(NodeCheckpointsTest, ACheckpointComesFromAnotherNode) {
    connect();
    const std::string big(700'000, 'w');
    make(there.directory + "/checkpoint_000004", big);
    LaunchPlan plan = resuming(4);
    plan.checkpoints.fetch_from = NodeId{1};

    here.checkpoints->launch(plan, now);
    run_until([&] { return here.started == 1; });

    EXPECT_EQ(content(here.directory + "/checkpoint_000004/layers/first"), big);
    EXPECT_TRUE(fs::exists(there.directory + "/checkpoint_000004"));

    // The copy goes with the attempt: the original is that of the other node.
    here.checkpoints->end({kMember, {}, {}, ""}, now);
    run_until([&] { return fs::is_empty(here.directory); });
}

TEST_F(NodeCheckpointsTest, WhatTheOtherNodeDoesNotHaveIsUnusable) {
    connect();
    LaunchPlan plan = resuming(4);
    plan.checkpoints.fetch_from = NodeId{1};

    here.checkpoints->launch(plan, now);
    run_until([&] { return !here.all<MemberEnded>().empty(); });

    EXPECT_THAT(here.all<CheckpointUnusable>().at(0).why, HasSubstr("No such file"));
    EXPECT_EQ(here.started, 0);
}

TEST_F(NodeCheckpointsTest, ANodeThatIsGoneOrSilentEndsTheFetch) {
    LaunchPlan plan = resuming(4);
    plan.checkpoints.fetch_from = NodeId{1};

    here.checkpoints->launch(plan, now);
    run_until([&] { return !here.all<PeerWord>().empty(); });
    here.checkpoints->hear({NodeId{1}, std::nullopt, ""}, now);
    EXPECT_THAT(here.all<CheckpointUnusable>().at(0).why, HasSubstr("is gone"));

    here.checkpoints->launch(plan, now);
    run_until([&] { return here.all<PeerWord>().size() == 2; });
    now = here.checkpoints->next_deadline();
    here.checkpoints->tick(now);
    EXPECT_THAT(here.all<CheckpointUnusable>().at(1).why, HasSubstr("said nothing for 2m"));
}

TEST_F(NodeCheckpointsTest, AMemberThatIsToEndBeforeItStartedIsNotStarted) {
    connect();
    make(there.directory + "/checkpoint_000004");
    LaunchPlan plan = resuming(4);
    plan.checkpoints.fetch_from = NodeId{1};
    here.checkpoints->launch(plan, now);

    EXPECT_TRUE(here.checkpoints->give_up(kMember, now));

    EXPECT_THAT(here.all<MemberEnded>().at(0).outcome.detail, HasSubstr("asked to end before"));
    EXPECT_FALSE(here.checkpoints->give_up(kMember, now));
    EXPECT_THAT(here.all<CheckpointUnusable>(), IsEmpty());
}

TEST_F(NodeCheckpointsTest, WhatIsDroppedIsRemovedBesideTheLoop) {
    make(here.directory + "/checkpoint_000004");
    make(here.directory + "/checkpoint_000005");

    here.checkpoints->remove({here.directory, 4});
    here.checkpoints->remove({here.directory, 9});
    here.checkpoints.reset();

    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(here.directory)) {
        names.push_back(entry.path().filename());
    }
    EXPECT_THAT(names, ElementsAre("checkpoint_000005"));
}

}  // namespace
}  // namespace muster
