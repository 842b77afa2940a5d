// SPDX-License-Identifier: Apache-2.0
//
// The report server over real sockets, one thread: what is sent is in the socket when the server
// is asked, so that nothing has to be waited for.

#include "report/report_server.hpp"

#include <deque>
#include <limits>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report_fixture.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Metrics = std::vector<ValueMember>;

const std::string kWelcome = "{\"type\": \"welcome\", \"protocol\": 1}\n";

TEST_F(ReportServerTest, ReportsArriveInOrder) {
    RawClient client = connect_and_say(report_of(1) + report_of(2));

    run();

    EXPECT_THAT(reports(), ElementsAre(Metrics{{"step", 1}}, Metrics{{"step", 2}}));
    EXPECT_EQ(client.received(), kWelcome);
}

TEST_F(ReportServerTest, LinesMayComeByteByByte) {
    RawClient client = connect();
    for (const char byte : kHello + report_of(1)) {
        client.send(std::string(1, byte));
        run();
    }

    EXPECT_THAT(reports(), ElementsAre(Metrics{{"step", 1}}));
}

TEST_F(ReportServerTest, NonFiniteNumbersArrive) {
    RawClient client =
        connect_and_say("{\"type\":\"report\",\"metrics\":{\"a\":\"nan\",\"b\":\"-inf\"}}\n");

    run();

    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_THAT(reports(), ElementsAre(Metrics{{"a", nan}, {"b", -infinity}}));
}

TEST_F(ReportServerTest, TheConfigIsAnswered) {
    RawClient client = connect_and_say("{\"type\":\"config\"}\n");

    run();

    EXPECT_EQ(
        client.received(),
        kWelcome + "{\"type\": \"config\", \"line\": 2, \"config\": " + kConfigJson + "}\n"
    );
}

TEST_F(ReportServerTest, AWaitedReportGetsItsDecisionOnceItWasHandled) {
    RawClient client =
        connect_and_say("{\"type\":\"report\",\"metrics\":{\"x\":1},\"wait\":true}\n");

    events = server.receive();
    EXPECT_EQ(reports().size(), 1U);
    EXPECT_EQ(client.received(), kWelcome);
    EXPECT_TRUE(wait_ready(server.fd(), POLLIN));
    run();

    EXPECT_THAT(
        client.received(),
        EndsWith("{\"type\": \"decision\", \"line\": 2, \"decision\": \"continue\"}\n")
    );
}

TEST_F(ReportServerTest, TheDecisionIsStopWhenTheReportLedToIt) {
    RawClient client =
        connect_and_say("{\"type\":\"report\",\"metrics\":{\"x\":1},\"wait\":true}\n");

    events = server.receive();
    server.tell_stop(kMember);
    run();

    EXPECT_EQ(
        client.received(),
        kWelcome + "{\"type\": \"stop\"}\n" +
            "{\"type\": \"decision\", \"line\": 2, \"decision\": \"stop\"}\n"
    );
}

TEST_F(ReportServerTest, AnswersKeepTheOrderOfTheirLines) {
    RawClient client = connect_and_say(
        "{\"type\":\"report\",\"metrics\":{\"x\":1},\"wait\":true}\n{\"type\":\"config\"}\n"
    );

    run();

    EXPECT_THAT(client.received(), HasSubstr("\"continue\"}\n{\"type\": \"config\", \"line\": 3"));
}

TEST_F(ReportServerTest, AStopIsToldOnceOnEveryConnectionAlsoOnLaterOnes) {
    RawClient first = connect_and_say("");
    run();

    server.tell_stop(kMember);
    server.tell_stop(kMember);
    RawClient second = connect_and_say("");
    run();

    EXPECT_EQ(first.received(), kWelcome + "{\"type\": \"stop\"}\n");
    EXPECT_EQ(second.received(), kWelcome + "{\"type\": \"stop\"}\n");
}

TEST_F(ReportServerTest, AWarningIsToldOnEveryConnectionAlsoOnLaterOnes) {
    RawClient first = connect_and_say("");
    run();

    server.tell_warning(kMember, std::chrono::seconds{120});
    RawClient second = connect_and_say("");
    run();

    EXPECT_THAT(first.received(), HasSubstr(R"({"type": "warning", "seconds": 120.000})"));
    EXPECT_THAT(second.received(), HasSubstr(R"({"type": "warning", "seconds": 1)"));
}

TEST_F(ReportServerTest, ACheckpointIsAnsweredWhenItIsSafeAndNothingFurtherIsTakenBefore) {
    RawClient client = connect_and_say(
        "{\"type\":\"checkpoint\",\"path\":\".new-a\",\"step\":4}\n" + report_of(5)
    );
    run();
    const std::vector<ReportServer::CheckpointAsked> asked = server.take_checkpoints();
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].key, kMember);
    EXPECT_EQ(asked[0].line, (CheckpointLine{".new-a", 4.0}));
    EXPECT_TRUE(reports().empty());

    server.answer_checkpoint(asked[0].ticket, "checkpoint_000001");
    run();

    EXPECT_THAT(
        client.received(),
        HasSubstr(R"({"type": "checkpoint", "line": 2, "name": "checkpoint_000001"})")
    );
    EXPECT_EQ(reports().size(), 1U);
    EXPECT_TRUE(server.take_checkpoints().empty());
}

TEST_F(ReportServerTest, ACheckpointThatIsNotKeptIsSaid) {
    RawClient client = connect_and_say("{\"type\":\"checkpoint\",\"path\":\".new-a\"}\n");
    run();

    server.refuse_checkpoint(server.take_checkpoints().at(0).ticket, "the disk is full");

    EXPECT_THAT(client.received(), HasSubstr(R"("text": "the disk is full", "closed": false)"));
}

TEST_F(ReportServerTest, WhoLeavesBeforeItsCheckpointIsSafeCostsNothing) {
    RawClient client = connect_and_say("{\"type\":\"checkpoint\",\"path\":\".new-a\"}\n");
    run();
    const std::uint64_t ticket = server.take_checkpoints().at(0).ticket;

    client.close();
    run();

    pollfd entry{server.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 0);
    EXPECT_EQ(server.connection_count(), 0U);
    server.answer_checkpoint(ticket, "checkpoint_000001");
}

TEST_F(ReportServerTest, DrainingFindsACheckpointThatWasAskedForBeforeTheEnd) {
    connect_and_say("{\"type\":\"checkpoint\",\"path\":\".new-a\"}\n" + report_of(5)).close();

    events = server.drain(kMember);

    EXPECT_EQ(server.take_checkpoints().size(), 1U);
    EXPECT_EQ(reports().size(), 1U);
}

TEST_F(ReportServerTest, WhoIsNotExpectedIsTurnedAway) {
    RawClient other = connect();
    other.send("{\"type\":\"hello\",\"protocol\":1,\"trial\":\"00042\",\"attempt\":\"1.6\"}\n");
    other.send(report_of(1));
    RawClient garbage = connect();
    garbage.send("GET / HTTP/1.1\n\n");
    RawClient newer = connect();
    newer.send("{\"type\":\"hello\",\"protocol\":2,\"trial\":\"00042\",\"attempt\":\"1.7\"}\n");
    RawClient silent = connect();
    silent.send(report_of(1));

    run();

    EXPECT_THAT(reports(), IsEmpty());
    EXPECT_THAT(
        refusals(),
        testing::UnorderedElementsAre(
            EndsWith("trial 00042, attempt 1.6, member 0 does not run here"),
            EndsWith("not a line of JSON: expected '{' at byte 0"),
            EndsWith("protocol 2 is not 1, the one known"),
            EndsWith("the first line must be a hello")
        )
    );
    EXPECT_THAT(other.received(), HasSubstr("\"closed\": true"));
    EXPECT_TRUE(other.ended());
    EXPECT_EQ(server.connection_count(), 0U);
}

TEST_F(ReportServerTest, ARefusedLineIsToldAndTheConnectionGoesOn) {
    RawClient client = connect_and_say("nonsense\n{\"type\":\"\xff\"}\n" + report_of(3));

    run();

    EXPECT_THAT(reports(), ElementsAre(Metrics{{"step", 3}}));
    EXPECT_THAT(
        refusals(),
        ElementsAre(
            "report refused: not a line of JSON: expected '{' at byte 0",
            "report refused: not UTF-8 at byte 9"
        )
    );
    EXPECT_THAT(client.received(), HasSubstr("\"line\": 3, \"text\": \"not UTF-8 at byte 9\""));
}

TEST_F(ReportServerTest, TenMegabytesInOneLineAreRefusedWithoutHarm) {
    RawClient client = connect_and_say("{\"type\":\"report\",\"metrics\":{\"x\":\"");
    const std::string piece(100'000, 'x');
    std::size_t sent = 0;
    while (sent < 10'000'000) {
        sent += client.send_some(piece);
        run();
    }
    client.send("\"}}\n" + report_of(1));

    run();

    EXPECT_THAT(refusals(), ElementsAre("report refused: a line longer than 1 MiB"));
    EXPECT_THAT(reports(), ElementsAre(Metrics{{"step", 1}}));
    EXPECT_THAT(client.received(), HasSubstr("a line longer than 1 MiB"));
}

TEST_F(ReportServerTest, ALineOfExactlyOneMebibyteIsTaken) {
    const std::string begin = "{\"type\":\"report\",\"metrics\":{\"x\":\"";
    const std::string text((1U << 20U) - begin.size() - 3, 'x');
    const std::string line = begin + text + "\"}}\n";
    RawClient client = connect_and_say("");
    for (std::size_t sent = 0; sent < line.size();) {
        sent += client.send_some(std::string_view(line).substr(sent));
        run();
    }

    run();

    EXPECT_THAT(reports(), ElementsAre(Metrics{{"x", text}}));
    EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(ReportServerTest, OfManyRefusalsTheFirstTenAndThenTenthPowersAreTold) {
    RawClient client = connect_and_say("");
    for (int index = 0; index < 1234; ++index) {
        client.send("x\n");
        run();
    }

    EXPECT_EQ(refusals().size(), 12U);
    EXPECT_THAT(refusals().back(), EndsWith("(1000 refused so far)"));
}

TEST_F(ReportServerTest, WhoDoesNotReadIsNotListenedToUntilItReads) {
    RawClient client = connect_and_say("");
    const std::string ask = "{\"type\":\"config\"}\n";
    std::size_t asked = 0;
    // Without an end to the server's patience this would go on for ever.
    for (int rounds = 0; rounds < 200'000; ++rounds) {
        const std::size_t sent = client.send_some(ask);
        if (sent != ask.size()) {
            break;
        }
        ++asked;
        run();
    }
    ASSERT_LT(asked, 199'999U);
    RawClient other = connect_and_say(report_of(1));
    run();
    EXPECT_EQ(reports().size(), 1U);

    const std::string line = "{\"type\": \"config\", \"line\": " + std::to_string(asked + 1);
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (client.received().find(line) == std::string::npos && Clock::now() < deadline) {
        run();
    }

    EXPECT_THAT(client.received(), HasSubstr(line));
}

TEST_F(ReportServerTest, ErrorsThatNobodyReadsHoldNoReportBack) {
    RawClient client = connect_and_say("");
    for (int index = 0; index < 20'000; ++index) {
        client.send("x\n");
        run();
    }
    client.send(report_of(1));
    run();

    EXPECT_EQ(reports().size(), 1U);
}

TEST_F(ReportServerTest, AHundredThousandReportsArrive) {
    RawClient client = connect_and_say("");
    std::string lines;
    for (int step = 0; step < 100'000; ++step) {
        lines += report_of(step);
    }
    for (std::size_t sent = 0; sent < lines.size();) {
        sent += client.send_some(std::string_view(lines).substr(sent, 150'000));
        run();
    }
    run();

    const auto arrived = reports();
    ASSERT_EQ(arrived.size(), 100'000U);
    EXPECT_EQ(arrived.back(), (Metrics{{"step", 99'999}}));
}

TEST_F(ReportServerTest, OneCallHandlesABoundedNumberOfLinesAndTheRestStaysReady) {
    std::string lines;
    for (int step = 0; step < 300; ++step) {
        lines += report_of(step);
    }
    RawClient busy = connect_and_say(lines);
    RawClient other = connect_and_say(report_of(1000));

    events = server.receive(100);
    EXPECT_EQ(reports().size(), 99U);
    EXPECT_TRUE(wait_ready(server.fd(), POLLIN));
    run();

    EXPECT_EQ(reports().size(), 301U);
}

TEST_F(ReportServerTest, ABusyConnectionLeavesTheOthersTheirTurn) {
    std::string lines;
    for (int step = 0; step < 2000; ++step) {
        lines += report_of(0);
    }
    RawClient busy = connect_and_say(lines);
    RawClient other = connect_and_say(report_of(1));

    events = server.receive(1000);

    EXPECT_THAT(reports(), testing::Contains(Metrics{{"step", 1}}));
}

TEST_F(ReportServerTest, NothingToDoIsNotReady) {
    RawClient client = connect_and_say(report_of(1));
    run();

    pollfd entry{server.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST_F(ReportServerTest, ClientsComeAndGo) {
    for (int round = 0; round < 1000; ++round) {
        connect_and_say(report_of(round));
        if (round % 10 == 0) {
            run();
        }
    }
    run();

    EXPECT_EQ(reports().size(), 1000U);
    EXPECT_EQ(server.connection_count(), 0U);
}

TEST_F(ReportServerTest, ALastLineWithoutItsEndCountsWhenItIsWhole) {
    RawClient whole = connect_and_say("{\"type\":\"report\",\"metrics\":{\"x\":1}}");
    whole.shut_down();
    RawClient half = connect_and_say("{\"type\":\"report\",\"metrics\":{\"x\":");
    half.close();

    run();

    EXPECT_THAT(reports(), ElementsAre(Metrics{{"x", 1}}));
    EXPECT_THAT(refusals(), ElementsAre(HasSubstr("expected a value at byte 32")));
    EXPECT_EQ(whole.received(), kWelcome);
    EXPECT_TRUE(whole.ended());
}

TEST_F(ReportServerTest, DrainingFindsWhatTheMemberSentBeforeItEnded) {
    std::string lines;
    for (int step = 0; step < 3000; ++step) {
        lines += report_of(step);
    }
    RawClient known = connect_and_say("");
    run();
    known.send(lines + "{\"type\":\"report\",\"metrics\":{\"step\":3000},\"wait\":true}\n");
    known.send("{\"type\":\"report\",\"metrics\":{\"step\":3001},\"wait\":true}\n");
    known.close();
    connect_and_say(report_of(3002)).close();

    events = server.drain(kMember);
    server.forget(kMember);

    EXPECT_EQ(reports().size(), 3003U);
    run();
    EXPECT_EQ(reports().size(), 3003U);
    EXPECT_EQ(server.connection_count(), 0U);
}

TEST_F(ReportServerTest, DrainingOneMemberLosesNothingOfAnother) {
    const MemberKey other{TrialId{1}, AttemptId{1, 8}, MemberId{0}};
    server.expect(other, "{}");
    RawClient client = connect_and_say(report_of(1) + report_of(2));

    const std::vector<AgentEvent> drained = server.drain(other);
    EXPECT_THAT(drained, IsEmpty());
    server.forget(other);
    run();

    EXPECT_EQ(reports().size(), 2U);
}

TEST_F(ReportServerTest, AForgottenMemberIsRefused) {
    RawClient before = connect_and_say("");
    run();

    server.forget(kMember);
    RawClient after = connect_and_say(report_of(1));
    run();

    before.received();
    EXPECT_TRUE(before.ended());
    EXPECT_THAT(after.received(), HasSubstr("does not run here"));
    EXPECT_THAT(reports(), IsEmpty());
}

TEST_F(ReportServerTest, AMemberHasAtMostAHundredAndTwentyEightConnections) {
    std::deque<RawClient> clients;
    for (int index = 0; index < 129; ++index) {
        clients.push_back(connect_and_say(""));
    }

    run();

    EXPECT_EQ(server.connection_count(), 128U);
    EXPECT_THAT(refusals(), ElementsAre(HasSubstr("more than 128 connections at once")));
}

TEST_F(ReportServerTest, SilentStrangersMakeRoomForThoseWhoSpeak) {
    std::deque<RawClient> strangers;
    for (int index = 0; index < 900; ++index) {
        strangers.push_back(connect());
        run();
    }

    RawClient client = connect_and_say(report_of(1));
    run();

    EXPECT_EQ(reports().size(), 1U);
}

TEST_F(ReportServerTest, WhoSpeaksIsHeardWhenDescriptorsAreShort) {
    std::deque<RawClient> clients;
    for (int step = 0; step < 100; ++step) {
        clients.push_back(connect_and_say(report_of(step)));
        clients.back().shut_down();
    }
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next_free = ::dup(0);
    ::close(next_free);
    const rlimit tight{static_cast<rlim_t>(next_free) + 2, before.rlim_max};

    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    run();
    ::setrlimit(RLIMIT_NOFILE, &before);

    EXPECT_EQ(reports().size(), 100U);
}

TEST(ReportServerListenTest, TheDirectoryMustBelongToThisUserAlone) {
    const RunDir dir;
    ::chmod(dir.path().c_str(), 0755);

    const Result<ReportServer> server = ReportServer::listen(dir.path());

    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.error().code, ErrorCode::InvalidInput);
    EXPECT_THAT(server.error().message, HasSubstr("it has mode 755"));
}

TEST(ReportServerListenTest, ATooLongPathIsSaid) {
    const RunDir dir;
    const std::string deep = dir.path() + "/" + std::string(100, 'd');
    ::mkdir(deep.c_str(), 0700);

    const Result<ReportServer> server = ReportServer::listen(deep);

    ASSERT_FALSE(server.ok());
    EXPECT_THAT(server.error().message, HasSubstr("at most 107: set TMPDIR"));
}

TEST(ReportServerListenTest, NothingIsLeftBehind) {
    const RunDir dir;
    std::string path;
    {
        const Result<ReportServer> server = ReportServer::listen(dir.path());
        path = server->socket_path();
        EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    }

    EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace muster
