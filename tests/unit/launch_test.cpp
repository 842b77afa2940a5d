// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/exit_line.hpp"
#include "launch/launch_line.hpp"
#include "launch/stderr_filter.hpp"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LaunchOptions options() {
    LaunchOptions options;
    options.program = "/bin/muster";
    options.arguments = {"run", "sweep.yaml"};
    return options;
}

std::string line(const LaunchOptions& options, const LaunchPlace& place = {}) {
    std::string text;
    const std::vector<std::string> words = launch_line(options, place).value();
    for (const std::string& word : words) {
        text += (text.empty() ? "" : " ") + word;
    }
    return text;
}

std::string said(Announcement::Kind kind, std::int64_t value = 0) {
    return announcement_line({.kind = kind, .value = value}, "abc");
}

TEST(LaunchLineTest, HostsGetARankEach) {
    LaunchOptions wanted = options();
    wanted.hosts = {"n1", "n2"};
    wanted.agent = "ssh -p 2222";
    wanted.interface = "ib0";

    EXPECT_EQ(
        line(wanted),
        "mpirun --enable-recovery --bind-to none --map-by seq --host n1,n2 --mca ras ^slurm "
        "--mca plm rsh --mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_agent ssh -p 2222 --mca "
        "btl_tcp_if_include ib0 --mca oob_tcp_if_include ib0 -x MUSTER_LAUNCH_TOKEN -x "
        "MUSTER_TERMINAL /bin/muster run sweep.yaml"
    );
}

TEST(LaunchLineTest, TheUsersWordsTakeThePlaceOfOurs) {
    LaunchOptions wanted = options();
    wanted.hosts = {"n1"};
    wanted.interface = "ib0";
    wanted.more = {"--mca", "btl_tcp_if_include", "eth0", "--bind-to", "core"};

    const std::string text = line(wanted);

    EXPECT_THAT(text, HasSubstr("--mca btl_tcp_if_include eth0 --bind-to core /bin/muster"));
    EXPECT_THAT(text, Not(HasSubstr("btl_tcp_if_include ib0")));
    EXPECT_THAT(text, Not(HasSubstr("--bind-to none")));
    EXPECT_THAT(text, HasSubstr("oob_tcp_if_include ib0"));
}

TEST(LaunchLineTest, RanksWithoutHostsRunHere) {
    LaunchOptions wanted = options();
    wanted.ranks = 3;

    EXPECT_THAT(line(wanted), HasSubstr("-n 3 --map-by node --oversubscribe"));
}

TEST(LaunchLineTest, FewerRanksThanHostsTakeTheFirst) {
    LaunchOptions wanted = options();
    wanted.hosts = {"n1", "n2", "n3"};
    wanted.ranks = 2;

    EXPECT_THAT(line(wanted), HasSubstr("--map-by seq --host n1,n2 "));
}

TEST(LaunchLineTest, RanksFollowTheOrderOfTheHosts) {
    LaunchOptions wanted = options();
    wanted.hosts = {"n2", "n1:4", "n2"};

    EXPECT_THAT(line(wanted), HasSubstr("--map-by seq --host n2,n1 "));

    wanted.ranks = 5;

    EXPECT_THAT(line(wanted), HasSubstr("--map-by seq --host n2,n1,n2,n1,n2 "));
}

TEST(LaunchLineTest, ASlurmJobIsLaunchedBySrun) {
    EXPECT_EQ(
        line(options(), {.in_slurm_job = true, .slurm_nodes = 4}),
        "srun -N 4 -n 4 --ntasks-per-node=1 --mpi=pmix --input=0 --no-kill --kill-on-bad-exit=0 "
        "--wait=0 "
        "--cpu-bind=none --overlap /bin/muster run sweep.yaml"
    );
}

TEST(LaunchLineTest, HostsInsideASlurmJobAreLaunchedByMpirun) {
    LaunchOptions wanted = options();
    wanted.hosts = {"n1"};

    EXPECT_THAT(line(wanted, {.in_slurm_job = true, .slurm_nodes = 4}), HasSubstr("mpirun "));
}

TEST(LaunchLineTest, ContradictionsAreRefused) {
    LaunchOptions both = options();
    both.hosts = {"n1"};
    both.hostfile = "hosts";
    LaunchOptions srun = options();
    srun.with = LaunchWith::Srun;
    LaunchOptions many = srun;
    many.ranks = 9;

    EXPECT_THAT(launch_line(both, {}).error().message, HasSubstr("leave one out"));
    EXPECT_THAT(launch_line(srun, {}).error().message, HasSubstr("needs a Slurm job"));
    EXPECT_THAT(
        launch_line(many, {.in_slurm_job = true, .slurm_nodes = 4}).error().message,
        HasSubstr("-n 9: the job has 4 nodes")
    );
}

TEST(HostfileTest, NamesStandFirstOnTheirLines) {
    EXPECT_THAT(
        parse_hostfile("# all\nn1 slots=4\n\n  n2  # the other\n", "hosts").value(),
        ElementsAre("n1", "n2")
    );
}

TEST(HostfileTest, WhatIsNoHostIsNamedWithItsLine) {
    EXPECT_EQ(
        parse_hostfile("n1\nslots=4\n", "hosts").error().message,
        "hosts:2: 'slots=4' is no host; write a name and perhaps slots=N"
    );
    EXPECT_EQ(
        parse_hostfile("n1 slots=many\n", "hosts").error().message,
        "hosts:1: 'slots=many' is not understood; behind a name may stand slots=N"
    );
    EXPECT_EQ(parse_hostfile("# none\n", "hosts").error().message, "hosts: names no host");
}

TEST(SignalLineTest, OnlyTheLaunchsOwnCount) {
    EXPECT_EQ(signal_of(signal_line("abc", 15), "abc"), 15);
    EXPECT_EQ(signal_of(signal_line("abc", 15), "other"), std::nullopt);
    EXPECT_EQ(signal_of("abc 15x", "abc"), std::nullopt);
    EXPECT_EQ(signal_of("", "abc"), std::nullopt);
}

TEST(StderrFilterTest, AnnouncementsAreTakenOutAndRemembered) {
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take("one\n" + said(Announcement::Kind::Begin) + "\ntwo\n"), "one\ntwo\n");
    EXPECT_TRUE(filter.has_begun());
    EXPECT_EQ(filter.exit_code(), std::nullopt);
    EXPECT_EQ(filter.take(said(Announcement::Kind::End, 75) + "\n"), "");
    EXPECT_EQ(filter.exit_code(), 75);
}

TEST(StderrFilterTest, SomebodyElsesAnnouncementIsShown) {
    const std::string other = announcement_line({.kind = Announcement::Kind::End}, "other");
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take(other + "\n"), other + "\n");
    EXPECT_FALSE(filter.has_begun());
}

TEST(StderrFilterTest, SilenceIsAllowedForAsLongAsWasSaidLast) {
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take(said(Announcement::Kind::Alive, 70) + "\n"), "");
    EXPECT_EQ(filter.take_patience(), std::chrono::seconds{70});
    EXPECT_EQ(filter.take_patience(), std::nullopt);
}

TEST(StderrFilterTest, AnAnnouncementMayStandInTheMiddleOfAnothersLine) {
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take("hel" + said(Announcement::Kind::End, 1) + "\nlo\n"), "hello\n");
    EXPECT_EQ(filter.exit_code(), 1);
}

TEST(StderrFilterTest, HalfAnAnnouncementIsKeptBack) {
    const std::string line = said(Announcement::Kind::End, 3) + "\n";
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take("text" + line.substr(0, 12)), "");
    EXPECT_EQ(filter.flush(), "text");
    EXPECT_EQ(filter.take(line.substr(12)), "");
    EXPECT_EQ(filter.exit_code(), 3);
}

TEST(StderrFilterTest, ALineMayComeInPieces) {
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take("hel"), "");
    EXPECT_EQ(filter.take("lo\nwor"), "hello\n");
    EXPECT_EQ(filter.flush(), "wor");
}

TEST(StderrFilterTest, NoiseOfALostRankIsLeftOutAndNothingElse) {
    const std::string rule(74, '-');
    StderrFilter filter("abc");

    EXPECT_EQ(
        filter.take("[n1:7] PMIX ERROR: BAD-PARAM in file x.c at line 1033\nkept\n"), "kept\n"
    );
    EXPECT_EQ(
        filter.take(
            rule + "\nWARNING: Open MPI failed to TCP connect to a peer MPI process.  This\n" +
            rule + "\n"
        ),
        ""
    );
    EXPECT_EQ(
        filter.take(rule + "\nThere are not enough slots\n" + rule + "\n"),
        rule + "\nThere are not enough slots\n" + rule + "\n"
    );
}

TEST(StderrFilterTest, ABlockWithoutAnEndIsShownAfterAWhile) {
    const std::string rule(74, '-');
    StderrFilter filter("abc");

    EXPECT_EQ(filter.take(rule + "\nhalf\n"), "");
    EXPECT_TRUE(filter.holds_back());
    EXPECT_EQ(filter.flush(), rule + "\nhalf\n");
}

}  // namespace
}  // namespace muster
