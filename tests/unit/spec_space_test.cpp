// SPDX-License-Identifier: Apache-2.0

#include <limits>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/load_spec.hpp"
#include "spec/resolved_spec.hpp"
#include "spec/scalar.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

/// The only parameter of a space written as {x: TEXT}.
Parameter parameter(const std::string& text) {
    const ExperimentSpec spec = spec_of(kRuns + "space: {x: " + text + "}");
    EXPECT_EQ(spec.space.parameters.size(), 1U);
    return spec.space.parameters.empty() ? Parameter{} : spec.space.parameters[0];
}

std::string refused_space(const std::string& text) {
    return refused(kRuns + "space: " + text);
}

Value constant(const std::string& text) {
    return std::get<Constant>(parameter(text).domain).value;
}

TEST(SpecSpaceTest, PlainScalarsHaveTheTypesOfYaml12) {
    EXPECT_EQ(constant("1"), Value(1));
    EXPECT_EQ(constant("-0x10"), Value("-0x10"));
    EXPECT_EQ(constant("0x1F"), Value(31));
    EXPECT_EQ(constant("0o17"), Value(15));
    EXPECT_EQ(constant("007"), Value(7));
    EXPECT_EQ(constant("+5"), Value(5));
    EXPECT_EQ(constant("1.0"), Value(1.0));
    EXPECT_EQ(constant("1e-4"), Value(1e-4));
    EXPECT_EQ(constant("1.0E+2"), Value(100.0));
    EXPECT_EQ(constant(".5"), Value(0.5));
    EXPECT_EQ(constant("5."), Value(5.0));
    EXPECT_EQ(constant(".inf"), Value(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(constant("-.INF"), Value(-std::numeric_limits<double>::infinity()));
    EXPECT_EQ(constant(".nan"), Value(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_EQ(constant("~"), Value());
    EXPECT_EQ(constant("null"), Value());
    EXPECT_EQ(constant("TRUE"), Value(true));
    EXPECT_EQ(constant("\"1\""), Value("1"));
    EXPECT_EQ(constant("!!str 1"), Value("1"));
    EXPECT_EQ(constant("yes"), Value("yes"));
    EXPECT_EQ(constant("off"), Value("off"));
    EXPECT_EQ(constant("nan"), Value("nan"));
    EXPECT_EQ(constant("1_000"), Value("1_000"));
    EXPECT_EQ(constant("1.2.3"), Value("1.2.3"));
    EXPECT_EQ(constant("9223372036854775807"), Value(std::numeric_limits<std::int64_t>::max()));
    EXPECT_EQ(constant("-9223372036854775808"), Value(std::numeric_limits<std::int64_t>::min()));
    EXPECT_EQ(constant("9223372036854775808"), Value(9223372036854775808.0));
    EXPECT_EQ(constant("[1, [2.0, a]]"), Value(Value::List{1, Value::List{2.0, "a"}}));
}

TEST(SpecSpaceTest, EveryDomainIsRead) {
    const std::vector<std::string> domains{
        "{uniform: [0.5, 1.0]}",
        "{quniform: [0.5, 1.0, 0.25]}",
        "{loguniform: [0.0001, 0.1]}",
        "{qloguniform: [0.5, 2.0, 0.5]}",
        "{randint: [1, 5]}",
        "{qrandint: [2, 8, 2]}",
        "{lograndint: [1, 100]}",
        "{qlograndint: [2, 8, 2]}",
        "{randn: [0.0, 1.0]}",
        "{qrandn: [0.0, 1.0, 0.5]}",
        "{choice: [a, 1, 1.0, true, \"1\", null]}",
        "{grid: [1, 2]}",
        "{expr: \"2 * 3\"}",
        "{constant: {a: [1]}}",
    };
    for (const std::string& domain : domains) {
        const ExperimentSpec spec = spec_of(kRuns + fmt::format("space: {{x: {}}}", domain));
        EXPECT_THAT(resolved_yaml(spec), HasSubstr(fmt::format("  x: {}\n", domain)));
    }
    EXPECT_EQ(std::get<IntDomain>(parameter("{randint: [1, 1e6]}").domain).upper, 1'000'000);
}

TEST(SpecSpaceTest, GroupsAreJoinedAndShareTheirCondition) {
    const ExperimentSpec spec = spec_of(kRuns + R"(
space:
  optimizer: {choice: [sgd, adam]}
  sgd: {momentum: {uniform: [0, 1]}, deep: {nesterov: true}, when: {optimizer: sgd}}
  flat/key: 3
  warmup: {randint: [0, 5], when: {optimizer: [sgd, adam], sgd: {deep: {nesterov: true}}}}
)");

    std::vector<std::string> keys;
    for (const Parameter& each : spec.space.parameters) {
        keys.push_back(each.key);
    }
    EXPECT_EQ(
        keys,
        (std::vector<std::string>{
            "optimizer", "sgd/momentum", "sgd/deep/nesterov", "flat/key", "warmup"})
    );
    EXPECT_EQ(spec.space.parameters[1].when, (Conditions{{"optimizer", {"sgd"}}}));
    EXPECT_EQ(spec.space.parameters[2].when, (Conditions{{"optimizer", {"sgd"}}}));
    EXPECT_EQ(
        spec.space.parameters[4].when,
        (Conditions{{"optimizer", {"sgd", "adam"}}, {"sgd/deep/nesterov", {true}}})
    );
}

TEST(SpecSpaceTest, AMisspeltDomainIsNoGroup) {
    EXPECT_EQ(
        refused_space("{lr: {unifrom: [0, 1]}}"),
        "sweep.yaml:2:14: space.lr: unknown domain 'unifrom'; did you mean 'uniform'?"
    );
    EXPECT_EQ(
        refused_space("{lr: {uniform: [0, 1], wen: {a: 1}}}"),
        "sweep.yaml:2:31: space.lr.wen: beside the domain uniform only `when` may stand"
    );
    EXPECT_THAT(refused_space("{lr: {}}"), HasSubstr("an empty map is neither domain nor group"));
}

TEST(SpecSpaceTest, ArgumentsOfDomainsAreChecked) {
    EXPECT_EQ(
        refused_space("{lr: {uniform: [0]}}"),
        "sweep.yaml:2:23: space.lr: expected uniform: [lower, upper], found a list of 1"
    );
    EXPECT_THAT(
        refused_space("{lr: {quniform: 3}}"),
        HasSubstr("expected quniform: [lower, upper, q], found the number 3")
    );
    EXPECT_THAT(
        refused_space("{lr: {uniform: [a, 1]}}"),
        HasSubstr("space.lr: expected a finite number, found the text 'a'")
    );
    EXPECT_THAT(refused_space("{lr: {uniform: [0, .inf]}}"), HasSubstr("expected a finite number"));
    EXPECT_THAT(
        refused_space("{lr: {randint: [0, 1.5]}}"),
        HasSubstr("expected a whole number, found the number 1.5")
    );
    EXPECT_THAT(
        refused_space("{lr: {qrandint: [0, 4, 0]}}"), HasSubstr("q is 0; it must be above 0")
    );
    EXPECT_THAT(
        refused_space("{lr: {choice: a}}"),
        HasSubstr("expected choice: [value, value, …], found the text 'a'")
    );
    EXPECT_THAT(refused_space("{lr: {expr: [a]}}"), HasSubstr("expected a formula"));
}

TEST(SpecSpaceTest, TheSpaceAsAWholeIsCheckedAtItsKeys) {
    EXPECT_THAT(
        refused_space("\n  a: {uniform: [2, 1]}\n  b: {loguniform: [0, 1]}\n  c: {choice: []}\n"),
        testing::AllOf(
            HasSubstr("sweep.yaml:3:3: space.a: "),
            HasSubstr("sweep.yaml:4:3: space.b: "),
            HasSubstr("sweep.yaml:5:3: space.c: ")
        )
    );
    EXPECT_THAT(
        refused_space("\n  a: 1\n  b: {expr: \"nope * 2\"}\n"),
        HasSubstr("sweep.yaml:4:3: space.b: ")
    );
}

TEST(SpecSpaceTest, ConditionsNameKeysAndPossibleValues) {
    EXPECT_EQ(
        refused_space("{opt: {choice: [sgd, adam]}, m: {uniform: [0, 1], when: {optt: sgd}}}"),
        "sweep.yaml:2:65: space.m.when.optt: no key of the space; did you mean 'opt'?"
    );
    EXPECT_EQ(
        refused_space("{opt: {choice: [sgd, adam]}, m: {uniform: [0, 1], when: {opt: sdg}}}"),
        "sweep.yaml:2:70: space.m.when.opt: opt is never 'sdg'; did you mean 'sgd'?"
    );
    EXPECT_EQ(
        refused_space("{opt: {choice: [sgd, adam]}, m: {uniform: [0, 1], when: {loss: 1}}}"),
        "sweep.yaml:2:65: space.m.when.loss: no key of the space; it has opt, m"
    );
    EXPECT_EQ(
        refused_space("{opt: {choice: [sgd, adam]}, m: {uniform: [0, 1], when: {opt: rmsprop}}}"),
        "sweep.yaml:2:70: space.m.when.opt: opt is never 'rmsprop'; it is sgd, adam"
    );
    EXPECT_THAT(
        refused_space("{a: 1, m: {uniform: [0, 1], when: b}}"),
        HasSubstr("space.m.when: expected a map")
    );
}

TEST(SpecSpaceTest, KeysMustBeUsableAsPlaceholders) {
    EXPECT_THAT(refused_space("{'a{b': 1}"), HasSubstr("must not hold braces"));
    EXPECT_THAT(refused_space("{muster.x: 1}"), HasSubstr("muster's own"));
    EXPECT_THAT(refused_space("{a//b: 1}"), HasSubstr("need a name"));
    EXPECT_THAT(refused_space("{when: 1}"), HasSubstr("'when' belongs beside a domain"));
    EXPECT_THAT(
        refused_space("{a: {b: 1}, a/b: 2}"), HasSubstr("space.a/b: the key is written twice")
    );
    EXPECT_THAT(
        refused_space("[1]"),
        HasSubstr("space: expected a map such as {lr: {uniform: [0, 1]}}, found a list")
    );
}

TEST(SpecSpaceTest, PointsNameKeysOfTheSpace) {
    const std::string space = "space: {lr: {uniform: [0, 1]}, g: {a: {choice: [1, 2]}}}\n";
    EXPECT_EQ(
        spec_of(kRuns + space + "search: {points: [{lr: 0.5, g: {a: 1}}, {g/a: 2}]}").search.points,
        (std::vector<std::vector<ValueMember>>{{{"lr", 0.5}, {"g/a", 1}}, {{"g/a", 2}}})
    );
    EXPECT_EQ(
        refused(kRuns + space + "search: {points: [{lt: 0.5}]}"),
        "sweep.yaml:3:20: search.points[0].lt: no key of the space; did you mean 'lr'?"
    );
    EXPECT_THAT(
        refused(kRuns + space + "search: {points: [{lr: 0.5}, {lr: 7}]}"),
        HasSubstr("sweep.yaml:3:30: search.points[1].lr: ")
    );
    EXPECT_THAT(
        refused(kRuns + space + "search: {points: {lr: 1}}"),
        HasSubstr("expected a list of configs")
    );
    EXPECT_THAT(
        refused(kRuns + space + "search: {algorithm: grid}"), HasSubstr("search.algorithm: lr: ")
    );
}

TEST(SpecSpaceTest, DurationsAreReadAndWritten) {
    EXPECT_EQ(*parse_duration("1d2h3m4s5ms6us"), std::chrono::microseconds(93784005006));
    EXPECT_EQ(*parse_duration("1.5"), std::chrono::milliseconds(1500));
    EXPECT_EQ(*parse_duration("1.5h"), std::chrono::minutes(90));
    for (const char* wrong : {"", "h", "1x", "1m1h", "1s1s", "1h-3m", "1 h", "1e400", "1.2.3s"}) {
        EXPECT_FALSE(parse_duration(wrong).ok()) << wrong;
    }
    for (const char* text : {"2h", "90m", "61s", "1500ms", "0s", "0.0015"}) {
        EXPECT_EQ(duration_text(*parse_duration(text)), text);
    }
}

}  // namespace
}  // namespace muster
