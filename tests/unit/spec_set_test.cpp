// SPDX-License-Identifier: Apache-2.0

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/load_spec.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(SpecSetTest, ASetGoesOverTheFile) {
    const std::string text =
        kRuns + "seed: 1\nspace: {lr: 1, g: {a: 2}, h/b: 3}\nresources: {gpu: 1}\n";
    const ExperimentSpec spec = spec_of(
        text,
        {"seed=7",
         "seed=8",
         "trial.time_limit=10m",
         "trial.env.A.b=x=y",
         "space.lr={uniform: [0, 1]}",
         "space.g/a=[5]",
         "space.h/b=six",
         "space.new/c=7",
         "resources.cpu=2",
         "search.points=[{lr: 0.5}]",
         "name='a b'",
         "metric="}
    );

    EXPECT_EQ(spec.seed, 8U);
    EXPECT_EQ(spec.name, "a b");
    EXPECT_EQ(spec.trial.time_limit, std::chrono::minutes(10));
    EXPECT_EQ(spec.trial.env, (std::vector<EnvironmentVariable>{{"A.b", "x=y"}}));
    EXPECT_EQ(to_string(spec.resources[0].group), "{cpu: 2, gpu: 1}");
    EXPECT_FALSE(spec.objective.has_value());
    std::vector<std::string> keys;
    for (const Parameter& parameter : spec.space.parameters) {
        keys.push_back(parameter.key);
    }
    EXPECT_EQ(keys, (std::vector<std::string>{"lr", "g/a", "h/b", "new/c"}));
    EXPECT_EQ(std::get<RealDomain>(spec.space.parameters[0].domain).upper, 1);
    EXPECT_EQ(std::get<Constant>(spec.space.parameters[1].domain).value, Value(Value::List{5}));
    EXPECT_EQ(std::get<Constant>(spec.space.parameters[2].domain).value, Value("six"));
}

TEST(SpecSetTest, ProblemsNameTheSet) {
    EXPECT_EQ(
        refused(kRuns, {"trial.tme_limit=10m"}),
        "--set trial.tme_limit=10m: trial.tme_limit: unknown key 'tme_limit'; did you mean "
        "'time_limit'?"
    );
    EXPECT_EQ(
        refused(kRuns, {"num_samples=many"}),
        "--set num_samples=many: num_samples: expected a whole number of 1 or more, or -1 for no "
        "end, found the text 'many'"
    );
    EXPECT_EQ(
        refused(kRuns + "resources: [{cpu: 1}]\n", {"resources.cpu=2"}),
        "--set resources.cpu=2: resources: resources is a list in the file; set it as a whole"
    );
    EXPECT_EQ(
        refused(kRuns + "space: {lr: {uniform: [0, 1]}}\n", {"space.lr.uniform=[0, 2]"}),
        "--set space.lr.uniform=[0, 2]: space.lr: a domain is set as a whole: "
        "--set 'space.lr={uniform: …}'"
    );
    EXPECT_THAT(refused(kRuns, {"seed"}), HasSubstr("--set seed: expected key=value"));
    EXPECT_THAT(refused(kRuns, {"=3"}), HasSubstr("expected key=value"));
    EXPECT_THAT(refused(kRuns, {"trial.=3"}), HasSubstr("the key is not complete"));
    EXPECT_THAT(refused(kRuns, {"space={"}), HasSubstr("--set space={: not YAML: "));
    EXPECT_THAT(refused(kRuns, {"trial=3"}), HasSubstr("--set trial=3: trial: expected a map"));
    EXPECT_THAT(
        refused(kRuns, {"search.algorithm=tpe"}), HasSubstr("'tpe' is not in this version")
    );
}

TEST(SpecSetTest, BytesThatAreNoTextAreRefusedAndNotRepeated) {
    EXPECT_EQ(refused(kRuns, {"space.\xFF=3"}), "--set space.\uFFFD=3: the key is not UTF-8");
    EXPECT_THAT(refused(kRuns, {"\xFF\n"}), HasSubstr("--set \uFFFD\uFFFD: expected key=value"));
    EXPECT_THAT(
        refused(kRuns, {std::string(79, 'k') + "éé"}),
        HasSubstr("--set " + std::string(79, 'k') + "é…: expected key=value")
    );
}

TEST(SpecSetTest, ASetMayGiveWhatTheFileLacks) {
    EXPECT_EQ(
        spec_of("", {"trial.command=[run, -x]"}).trial.command,
        (std::vector<std::string>{"run", "-x"})
    );
}

}  // namespace
}  // namespace muster
