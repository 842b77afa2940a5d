// SPDX-License-Identifier: Apache-2.0
//
// The clients - muster/trial.hpp, `muster report`, `muster get` - against the real server, which
// runs in a thread here. Each test has a process environment of its own making.

#include "report/report_client.hpp"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <sys/wait.h>

#include "muster/trial.hpp"

#include "report_fixture.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Metrics = std::vector<ValueMember>;

void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
}

void unset_all() {
    for (const char* name :
         {"MUSTER_SOCKET", "MUSTER_TRIAL_ID", "MUSTER_ATTEMPT", "MUSTER_CONFIG"}) {
        ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    }
}

/// Runs the server's loop in a thread until `client` has returned, then drains it.
class ReportClientTest : public ReportServerTest {
  protected:
    ReportClientTest() {
        set("MUSTER_SOCKET", server.socket_path());
        set("MUSTER_TRIAL_ID", "00042");
        set("MUSTER_ATTEMPT", "1.7");
        set("MUSTER_CONFIG", dir.path() + "/params.json");
        std::ofstream(dir.path() + "/params.json") << kConfigJson;
    }
    ~ReportClientTest() override { unset_all(); }

    template <class Body>
    void with_server(const Body& client) {
        std::atomic<bool> over{false};
        std::thread loop([&] {
            while (!over) {
                pollfd entry{server.fd(), POLLIN, 0};
                ::poll(&entry, 1, 10);
                take(server.receive());
            }
        });
        client();
        over = true;
        loop.join();
        take(server.drain(kMember));
    }

    void take(std::vector<AgentEvent> some) {
        std::move(some.begin(), some.end(), std::back_inserter(events));
    }
};

TEST_F(ReportClientTest, AProgramReports) {
    with_server([] {
        trial::Reporter reporter;
        EXPECT_TRUE(reporter.report({{"step", 1}, {"loss", 0.25}, {"f", 0.1F}, {"one", 1.0}}));
        EXPECT_TRUE(reporter.report({{"bad", std::nan("")}, {"text", "a\"b\n"}, {"good", true}}));
        EXPECT_TRUE(reporter.finish());
    });

    EXPECT_THAT(
        reports(),
        ElementsAre(
            Metrics{{"step", 1}, {"loss", 0.25}, {"f", 0.1}, {"one", 1.0}},
            Metrics{
                {"bad", std::numeric_limits<double>::quiet_NaN()},
                {"text", "a\"b\n"},
                {"good", true}}
        )
    );
}

TEST_F(ReportClientTest, AProgramSeesThatItShouldStop) {
    server.tell_stop(kMember);

    with_server([] {
        trial::Reporter reporter;
        EXPECT_EQ(reporter.report_and_wait({{"x", 1}}), trial::Decision::Stop);
        EXPECT_TRUE(reporter.should_stop());
    });
}

TEST_F(ReportClientTest, AnEarlierRefusalIsNotTakenForTheDecision) {
    with_server([] {
        trial::Reporter reporter({kPatience, kPatience, true});
        reporter.report({{"bad", "\xff"}});
        EXPECT_EQ(reporter.report_and_wait({{"x", 1}}), trial::Decision::Continue);
        EXPECT_THAT(reporter.last_problem(), HasSubstr("not UTF-8"));
        EXPECT_EQ(reporter.report_and_wait({{"x", 2}}), trial::Decision::Continue);
        EXPECT_FALSE(reporter.finish());
    });

    EXPECT_EQ(reports().size(), 2U);
}

TEST_F(ReportClientTest, AProgramAsksForItsConfig) {
    with_server([] {
        trial::Reporter reporter;
        const std::optional<trial::Fields> answer = reporter.ask_config();
        ASSERT_TRUE(answer.has_value());
        EXPECT_EQ(answer->back().name, "config/augment/flip");
    });
}

TEST_F(ReportClientTest, WhatIsReportedJustBeforeTheEndArrives) {
    const pid_t child = ::fork();
    if (child == 0) {
        for (int step = 0; step < 200; ++step) {
            trial::report(step, {{"x", 0.5}});
        }
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);

    take(server.drain(kMember));

    EXPECT_EQ(status, 0);
    EXPECT_EQ(reports().size(), 200U);
}

TEST_F(ReportClientTest, AChildAfterForkReportsOnItsOwnConnection) {
    with_server([] {
        trial::report(1, {{"x", 1}});
        const pid_t child = ::fork();
        if (child == 0) {
            ::_exit(trial::report(2, {{"x", 2}}) ? 0 : 1);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        trial::report(3, {{"x", 3}});
    });

    EXPECT_EQ(reports().size(), 3U);
}

TEST_F(ReportClientTest, ManyThreadsShareOneConnection) {
    with_server([] {
        std::vector<std::thread> threads(4);
        for (std::thread& thread : threads) {
            thread = std::thread([] {
                for (int step = 0; step < 500; ++step) {
                    trial::report(step, {{"x", 0.5}});
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    });

    EXPECT_EQ(reports().size(), 2000U);
}

TEST_F(ReportClientTest, AServerThatIsGoneIsSaidAndNothingHangs) {
    trial::Reporter reporter({kPatience, kPatience, true});
    EXPECT_TRUE(reporter.report({{"x", 1}}));

    { const ReportServer gone = std::move(server); }

    EXPECT_EQ(reporter.report_and_wait({{"x", 2}}), trial::Decision::Continue);
    EXPECT_THAT(reporter.last_problem(), HasSubstr("cannot reach muster at"));
}

TEST_F(ReportClientTest, TheCommandReports) {
    with_server([] {
        EXPECT_EQ(
            report_command({"loss=0.31", "step=4", "note=a=b", "bad=nan", "up=+2"}, false),
            (ClientOutcome{0, "", ""})
        );
        EXPECT_EQ(report_command({"loss=1"}, true), (ClientOutcome{0, "continue\n", ""}));
    });

    EXPECT_THAT(
        reports(),
        ElementsAre(
            Metrics{
                {"loss", 0.31},
                {"step", 4},
                {"note", "a=b"},
                {"bad", std::numeric_limits<double>::quiet_NaN()},
                {"up", 2}},
            Metrics{{"loss", 1}}
        )
    );
}

TEST_F(ReportClientTest, TheCommandSaysWhyAReportWasRefused) {
    set("MUSTER_ATTEMPT", "1.6");

    with_server([] {
        const ClientOutcome outcome = report_command({"loss=0.31"}, false);
        EXPECT_EQ(outcome.exit_code, 1);
        EXPECT_THAT(outcome.err, HasSubstr("attempt 1.6, member 0 does not run here"));
    });
}

TEST_F(ReportClientTest, TheCommandFailsWhenMusterIsGone) {
    set("MUSTER_SOCKET", dir.path() + "/nothing");

    const ClientOutcome outcome = report_command({"loss=0.31"}, false);

    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("cannot reach muster at"));
}

TEST_F(ReportClientTest, ValuesOfTheConfigArePrintedAsOnACommandLine) {
    EXPECT_EQ(get_command("lr"), (ClientOutcome{0, "0.1\n", ""}));
    EXPECT_EQ(get_command("augment/flip"), (ClientOutcome{0, "true\n", ""}));
    EXPECT_EQ(get_command("augment"), (ClientOutcome{0, "{\"flip\": true}\n", ""}));
    EXPECT_EQ(get_command(""), (ClientOutcome{0, kConfigJson + "\n", ""}));
    EXPECT_EQ(
        get_command("depth"),
        (ClientOutcome{2, "", "muster: the config has no \"depth\"; it has lr, augment/flip\n"})
    );
}

TEST(ReportClientAloneTest, NotUnderMusterReportingIsHarmlessAndAskingIsNot) {
    unset_all();

    EXPECT_EQ(
        report_command({"loss=0.31", "step=4"}, false),
        (ClientOutcome{0, "", "muster: not under muster: loss=0.31 step=4\n"})
    );
    EXPECT_EQ(get_command("lr").exit_code, 2);
    EXPECT_FALSE(trial::active());
    EXPECT_FALSE(trial::report(1, {{"x", 1}}));
    EXPECT_FALSE(trial::should_stop());
}

TEST(ReportClientAloneTest, ArgumentsThatMeanNothingAreNamed) {
    EXPECT_EQ(
        report_command({"loss"}, false),
        (ClientOutcome{2, "", "muster: \"loss\" is no metric: write name=value, as in loss=0.31\n"})
    );
    EXPECT_EQ(
        report_command({"a=1", "a=2"}, false),
        (ClientOutcome{2, "", "muster: \"a\" is given twice\n"})
    );
    EXPECT_EQ(report_command({}, false).exit_code, 2);
}

TEST(TrialConfigTest, FieldsOfGroupsAreJoined) {
    const auto fields = trial::parse_fields(
        R"({"a": 1, "b": {"c": "x\u00e4\n", "d": [1, "]", {"e": []}]}, "f": null, "g": -1e-5})"
    );

    ASSERT_TRUE(fields.has_value());
    std::vector<std::pair<std::string, std::string>> texts;
    for (const trial::Field& field : *fields) {
        texts.emplace_back(field.name, field.text);
    }
    EXPECT_THAT(
        texts,
        ElementsAre(
            std::pair("a", "1"),
            std::pair("b/c", "xä\n"),
            std::pair("b/d", R"([1, "]", {"e": []}])"),
            std::pair("f", "null"),
            std::pair("g", "-1e-5")
        )
    );
}

TEST(TrialConfigTest, ValuesConvertWhenTheyCan) {
    using trial::detail::convert;
    const auto fields = *trial::parse_fields(
        R"({"whole": 32, "real": 32.0, "part": 0.5, "yes": true, "text": "sgd", "nan": "nan"})"
    );

    EXPECT_EQ(convert<int>(fields[0]), 32);
    EXPECT_EQ(convert<int>(fields[1]), 32);
    EXPECT_EQ(convert<double>(fields[0]), 32.0);
    EXPECT_EQ(convert<int>(fields[2]), std::nullopt);
    EXPECT_EQ(convert<bool>(fields[3]), true);
    EXPECT_EQ(convert<bool>(fields[0]), std::nullopt);
    EXPECT_EQ(convert<std::string>(fields[4]), "sgd");
    EXPECT_EQ(convert<double>(fields[4]), std::nullopt);
    EXPECT_TRUE(std::isnan(*convert<double>(fields[5])));
}

TEST(TrialConfigTest, NoPrefixOfAConfigIsOne) {
    const std::string json = R"({"a": [1, "x"], "b": {"c": "\u00e4"}})";

    for (std::size_t size = 0; size < json.size(); ++size) {
        EXPECT_FALSE(trial::parse_fields(json.substr(0, size)).has_value()) << size;
    }
}

}  // namespace
}  // namespace muster
