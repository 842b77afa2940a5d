// SPDX-License-Identifier: Apache-2.0
//
// The searcher: order and number of configs, points, conditions, and that config i is always the
// same.

#include "search/searcher.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

struct Options {
    std::vector<std::vector<ValueMember>> points;
    std::int64_t num_samples = 1;
    std::uint64_t seed = 7;
    SearchAlgorithm algorithm = SearchAlgorithm::Random;
};

Result<BasicSearcher> try_make(SearchSpace space, const Options& options = {}) {
    return BasicSearcher::make(
        std::move(space), {options.algorithm, options.points}, options.num_samples, options.seed
    );
}

BasicSearcher make(SearchSpace space, const Options& options = {}) {
    Result<BasicSearcher> searcher = try_make(std::move(space), options);
    EXPECT_TRUE(searcher.ok()) << (searcher ? "" : searcher.error().message);
    return *std::move(searcher);
}

std::string refusal(SearchSpace space, const Options& options = {}) {
    const Result<BasicSearcher> searcher = try_make(std::move(space), options);
    return searcher ? "accepted" : searcher.error().message;
}

std::vector<std::string> texts(const Suggestion& suggestion) {
    std::vector<std::string> all;
    for (const Config& config : suggestion.configs) {
        all.push_back(to_text(config));
    }
    return all;
}

Parameter grid(const char* key, Value::List values) {
    return {.key = key, .domain = Grid{std::move(values)}};
}

Parameter real(const char* key, double lower, double upper) {
    return {.key = key, .domain = RealDomain{.lower = lower, .upper = upper}};
}

Parameter formula(const char* key, const char* text) {
    return {.key = key, .domain = Expression{text}};
}

/// 4 × 3 grid points.
SearchSpace four_by_three() {
    return {{grid("g1", {"a", "b", "c", "d"}), grid("g2", {"x", "y", "z"}), real("lr", 0, 1)}};
}

/// Five keys, of which four are drawn.
SearchSpace five_keys() {
    return {{
        {.key = "lr", .domain = RealDomain{.lower = 1e-4, .upper = 0.1, .log = true}},
        {.key = "hidden", .domain = IntDomain{.lower = 8, .upper = 128, .q = 8}},
        {.key = "optimizer", .domain = Choice{{"sgd", "adam"}}},
        {.key = "momentum",
         .domain = RealDomain{.lower = 0, .upper = 0.99},
         .when = {{.key = "optimizer", .any_of = {"sgd"}}}},
        {.key = "warmup", .domain = Expression{"lr * 10"}},
    }};
}

TEST(SearcherTest, TheFirstKeyOfAGridVariesFastest) {
    BasicSearcher searcher = make({{grid("a", {true, false}), grid("b", {1, 2, 3})}});

    const Suggestion suggestion = *searcher.suggest(100);

    EXPECT_EQ(
        texts(suggestion),
        (std::vector<std::string>{
            "a=true b=1", "a=false b=1", "a=true b=2", "a=false b=2", "a=true b=3", "a=false b=3"})
    );
    EXPECT_TRUE(suggestion.exhausted);
    EXPECT_EQ(searcher.total_trials(), 6U);
}

TEST(SearcherTest, TheWholeGridIsRepeatedAndTheRestDrawnAnew) {
    BasicSearcher searcher = make({{grid("g", {1, 2}), real("x", 0, 1)}}, {.num_samples = 3});

    const Suggestion suggestion = *searcher.suggest(100);

    std::vector<std::int64_t> order;
    std::set<double> drawn;
    for (const Config& config : suggestion.configs) {
        order.push_back(*config.find("g")->as_int());
        drawn.insert(*config.find("x")->as_real());
    }
    EXPECT_EQ(order, (std::vector<std::int64_t>{1, 2, 1, 2, 1, 2}));
    EXPECT_EQ(drawn.size(), 6U);
}

TEST(SearcherTest, APointTakesOneSampleAndOtherGridsAreStillCrossed) {
    const auto total = [](const std::vector<ValueMember>& point) {
        return make(four_by_three(), {.points = {point}, .num_samples = 6}).total_trials();
    };

    EXPECT_EQ(total({{"g1", "b"}}), 63U);
    EXPECT_EQ(total({{"g2", "z"}}), 64U);
    EXPECT_EQ(total({{"g1", "a"}, {"g2", "y"}}), 61U);
    EXPECT_EQ(total({}), 72U);
}

TEST(SearcherTest, PointsComeFirstAndTheirMissingKeysAreDrawn) {
    BasicSearcher searcher =
        make(four_by_three(), {.points = {{{"g1", "b"}}, {{"g2", "z"}, {"g1", "c"}, {"lr", 1}}}});

    const Suggestion suggestion = *searcher.suggest(10);

    ASSERT_EQ(suggestion.configs.size(), 4U);
    EXPECT_TRUE(suggestion.exhausted);
    std::set<double> drawn;
    for (int index = 0; index < 3; ++index) {
        const Config& config = suggestion.configs[static_cast<std::size_t>(index)];
        EXPECT_EQ(*config.find("g1"), Value("b"));
        EXPECT_EQ(
            *config.find("g2"),
            Value(std::vector<const char*>{"x", "y", "z"}[static_cast<std::size_t>(index)])
        );
        drawn.insert(*config.find("lr")->as_real());
    }
    EXPECT_EQ(drawn.size(), 3U);
    // Written as a whole number, it is real as its domain is.
    EXPECT_EQ(to_text(suggestion.configs[3]), "g1=c g2=z lr=1.0");
}

TEST(SearcherTest, EndlessNeverIsExhausted) {
    BasicSearcher searcher =
        make({{real("x", 0, 1)}}, {.points = {{{"x", 0.5}}}, .num_samples = -1});

    EXPECT_EQ(searcher.total_trials(), std::nullopt);
    EXPECT_EQ(to_text(searcher.suggest(1)->configs[0]), "x=0.5");
    searcher.skip(1'000'000'000'000);
    EXPECT_EQ(searcher.suggest(3)->configs.size(), 3U);
    EXPECT_FALSE(searcher.suggest(1)->exhausted);
}

TEST(SearcherTest, AnEmptySpaceHasOneConfigASample) {
    BasicSearcher searcher = make({}, {.num_samples = 2});

    EXPECT_EQ(searcher.total_trials(), 2U);
    EXPECT_EQ(searcher.suggest(5)->configs, (std::vector<Config>{Config(), Config()}));
}

TEST(SearcherTest, ExhaustedIsSaidWithTheLastConfig) {
    BasicSearcher searcher = make({{real("x", 0, 1)}}, {.num_samples = 3});

    EXPECT_FALSE(searcher.suggest(2)->exhausted);
    EXPECT_TRUE(searcher.suggest(1)->exhausted);
    EXPECT_EQ(*searcher.suggest(1), (Suggestion{.exhausted = true}));
    searcher.skip(std::numeric_limits<std::uint64_t>::max());
    EXPECT_TRUE(searcher.suggest(1)->exhausted);
}

TEST(SearcherTest, ConfigsDependOnSeedAndNumberAlone) {
    const Options options{.num_samples = 100};
    BasicSearcher at_once = make(five_keys(), options);
    BasicSearcher one_by_one = make(five_keys(), options);
    BasicSearcher continued = make(five_keys(), options);

    const std::vector<Config> all = at_once.suggest(100)->configs;
    std::vector<Config> singly;
    singly.reserve(100);
    for (int index = 0; index < 100; ++index) {
        singly.push_back(one_by_one.suggest(1)->configs[0]);
    }
    continued.skip(40);
    const std::vector<Config> rest = continued.suggest(100)->configs;

    EXPECT_EQ(singly, all);
    EXPECT_EQ(rest, std::vector<Config>(all.begin() + 40, all.end()));
    EXPECT_EQ(*continued.config_at(3), all[3]);
    EXPECT_NE(make(five_keys(), {.num_samples = 100, .seed = 8}).suggest(100)->configs, all);
}

TEST(SearcherTest, AnotherKeyOrOrderChangesNothingElse) {
    SearchSpace space = five_keys();
    const Config before = *make(five_keys(), {.num_samples = 9}).config_at(5);
    std::reverse(space.parameters.begin(), space.parameters.end());
    space.parameters.push_back(real("more", 0, 1));

    const Config after = *make(space, {.num_samples = 9}).config_at(5);

    for (const ValueMember& member : before.members()) {
        EXPECT_EQ(*after.find(member.key), member.value);
    }
}

TEST(SearcherTest, TheStreamOfOneSeedIsKnown) {
    const SearchSpace space{{
        real("uniform", 0, 1),
        {.key = "quniform", .domain = RealDomain{.lower = 0, .upper = 1, .q = 0.1}},
        {.key = "randint", .domain = IntDomain{.lower = 0, .upper = 1000}},
        {.key = "choice", .domain = Choice{{"a", "b", "c"}}},
    }};
    const SearchSpace logarithmic{{
        {.key = "loguniform", .domain = RealDomain{.lower = 1e-4, .upper = 0.1, .log = true}},
        {.key = "randn", .domain = NormalDomain{}},
    }};
    BasicSearcher searcher = make(space, {.num_samples = 3});
    const Config config = *make(logarithmic).config_at(0);

    EXPECT_EQ(
        texts(*searcher.suggest(3)),
        (std::vector<std::string>{
            "uniform=0.6311434899341651 quniform=0.1 randint=145 choice=b",
            "uniform=0.513487531333858 quniform=0.5 randint=459 choice=c",
            "uniform=0.16349216488979046 quniform=0.4 randint=706 choice=b"})
    );
    // Through the logarithm of the C library, which may differ in the last place.
    EXPECT_DOUBLE_EQ(*config.find("loguniform")->as_real(), 0.004839700224351969);
    EXPECT_DOUBLE_EQ(*config.find("randn")->as_real(), -0.091897616017804745);
}

TEST(SearcherTest, DrawsOfManyTrialsFillTheRange) {
    const SearchSpace space{
        {{.key = "lr", .domain = RealDomain{.lower = 1e-10, .upper = 1e-1, .log = true}}}};
    double least = 1;
    double most = 0;

    const Suggestion suggestion = *make(space, {.num_samples = 1000}).suggest(1000);
    for (const Config& config : suggestion.configs) {
        least = std::min(least, *config.find("lr")->as_real());
        most = std::max(most, *config.find("lr")->as_real());
    }

    EXPECT_NEAR(std::log10(least), -10, 0.1);
    EXPECT_NEAR(std::log10(most), -1, 0.1);
}

TEST(SearcherTest, AllConfigsShareOneSchema) {
    BasicSearcher searcher = make(five_keys(), {.num_samples = 2});

    const Suggestion suggestion = *searcher.suggest(2);

    EXPECT_EQ(suggestion.configs[0].schema(), searcher.schema());
    EXPECT_EQ(suggestion.configs[1].schema(), searcher.schema());
    EXPECT_EQ(
        searcher.schema()->keys,
        (std::vector<std::string>{"lr", "hidden", "optimizer", "momentum", "warmup"})
    );
}

TEST(SearcherTest, AKeyHasAValueOnlyWhereItsConditionHolds) {
    BasicSearcher searcher = make(five_keys(), {.num_samples = 200});
    int with_momentum = 0;

    const Suggestion suggestion = *searcher.suggest(200);
    for (const Config& config : suggestion.configs) {
        const bool sgd = *config.find("optimizer") == Value("sgd");
        EXPECT_EQ(config.find("momentum") != nullptr, sgd);
        EXPECT_EQ(*config.find("warmup")->as_real(), *config.find("lr")->as_real() * 10);
        with_momentum += sgd ? 1 : 0;
    }

    EXPECT_NEAR(with_momentum, 100, 30);
}

TEST(SearcherTest, ConditionsMayRestOnLaterAndConditionalKeys) {
    const SearchSpace space{{
        {.key = "c", .domain = Constant{"deep"}, .when = {{.key = "b", .any_of = {2}}}},
        {.key = "b", .domain = Grid{{1, 2}}, .when = {{.key = "a", .any_of = {true}}}},
        grid("a", {true, false}),
    }};

    BasicSearcher searcher = make(space);

    // Where a is false, b has no value and is not crossed.
    EXPECT_EQ(
        texts(*searcher.suggest(10)),
        (std::vector<std::string>{"b=1 a=true", "c=deep b=2 a=true", "a=false"})
    );
    EXPECT_EQ(searcher.total_trials(), 3U);
}

TEST(SearcherTest, APointFixesTheConditionOfAGrid) {
    const SearchSpace space{{
        grid("opt", {"sgd", "adam"}),
        {.key = "m", .domain = Grid{{0, 1, 2}}, .when = {{.key = "opt", .any_of = {"sgd"}}}},
    }};
    const auto total = [&](const std::vector<ValueMember>& point) {
        return make(space, {.points = {point}}).total_trials();
    };

    EXPECT_EQ(total({}), 4U);
    EXPECT_EQ(total({{"opt", "sgd"}}), 3U);
    EXPECT_EQ(total({{"opt", "adam"}}), 1U);
    EXPECT_EQ(total({{"opt", "sgd"}, {"m", 2}}), 1U);
}

TEST(SearcherTest, FormulasSeeAKeyWithoutAValueAsNull) {
    SearchSpace space = five_keys();
    space.parameters.push_back(formula("beta", "0.9 if momentum == null else momentum"));
    BasicSearcher searcher = make(space, {.num_samples = 50});

    const Suggestion suggestion = *searcher.suggest(50);
    for (const Config& config : suggestion.configs) {
        const Value* momentum = config.find("momentum");
        EXPECT_EQ(*config.find("beta"), momentum != nullptr ? *momentum : Value(0.9));
    }
}

TEST(SearcherTest, AFormulaWithoutAValueIsAnErrorAfterTheConfigsBeforeIt) {
    BasicSearcher searcher = make({{grid("n", {2, 1, 0, 4}), formula("share", "1 / n")}});

    const Suggestion before = *searcher.suggest(10);
    const Result<Suggestion> failed = searcher.suggest(10);

    EXPECT_EQ(texts(before), (std::vector<std::string>{"n=2 share=0.5", "n=1 share=1.0"}));
    EXPECT_FALSE(before.exhausted);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().message, "share: '1 / n': division by zero, where n is 0 (config 2)");
    EXPECT_FALSE(searcher.suggest(1).ok());
}

TEST(SearcherTest, AFunctionSeesWhatItDependsOn) {
    const auto function = [](const Config& config) {
        EXPECT_EQ(config.schema()->keys, (std::vector<std::string>{"b"}));
        return Value(*config.find("b")->as_int() * 2);
    };
    BasicSearcher searcher = make({{
        {.key = "f", .domain = SampleFrom{function, {"b"}}},
        grid("a", {1}),
        grid("b", {21}),
    }});

    EXPECT_EQ(texts(*searcher.suggest(1)), (std::vector<std::string>{"f=42 a=1 b=21"}));
}

TEST(SearcherTest, WhatAFunctionThrowsIsAnError) {
    const auto function = [](const Config&) -> Value { throw std::runtime_error("no luck"); };
    BasicSearcher searcher = make({{{.key = "f", .domain = SampleFrom{function, {}}}}});

    EXPECT_EQ(searcher.suggest(1).error().message, "f: its function threw: no luck (config 0)");
}

TEST(SearcherTest, AlgorithmGridCrossesChoices) {
    BasicSearcher searcher = make(
        {{{.key = "a", .domain = Choice{{1, 2}}}, grid("b", {"x", "y"}), formula("c", "a * 2")}},
        {.algorithm = SearchAlgorithm::Grid}
    );

    EXPECT_EQ(
        texts(*searcher.suggest(9)),
        (std::vector<std::string>{"a=1 b=x c=2", "a=2 b=x c=4", "a=1 b=y c=2", "a=2 b=y c=4"})
    );
}

TEST(SearcherTest, GridOf450ContinuesWithoutRepeating) {
    Value::List values;
    for (int value = 0; value < 30; ++value) {
        values.emplace_back(value);
    }
    const SearchSpace space{
        {grid("a", values), grid("b", Value::List(values.begin(), values.begin() + 15))}};
    BasicSearcher first = make(space);
    BasicSearcher second = make(space);

    std::set<std::string> seen;
    for (const std::string& text : texts(*first.suggest(50))) {
        seen.insert(text);
    }
    second.skip(50);
    for (const std::string& text : texts(*second.suggest(1000))) {
        EXPECT_TRUE(seen.insert(text).second) << text;
    }

    EXPECT_EQ(seen.size(), 450U);
}

TEST(SearcherTest, TooManyTrialsAreRefusedAtOnce) {
    Value::List values(100'000, Value(1));
    const SearchSpace large{{grid("a", values), grid("b", values)}};
    SearchSpace conditional{{grid("a", values), grid("b", Value::List(1000, Value(1)))}};
    conditional.parameters[1].when = {{.key = "a", .any_of = {1}}};

    EXPECT_EQ(
        refusal({{real("x", 0, 1)}}, {.num_samples = 4'294'967'296}),
        "there would be more than 4294967295 trials; lower num_samples"
    );
    EXPECT_EQ(
        refusal({{grid("a", values)}}, {.num_samples = 42'950}),
        "there would be more than 4294967295 trials; lower num_samples"
    );
    EXPECT_EQ(refusal({{grid("a", values)}}, {.num_samples = 42'949}), "accepted");
    EXPECT_EQ(refusal(large), "the grid has more than 4294967295 points; shorten its lists");
    EXPECT_EQ(
        refusal(conditional),
        "the grid has more than 4000000 points while some of its keys have a `when`; shorten its "
        "lists"
    );
    for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{-2}}) {
        EXPECT_EQ(
            refusal({}, {.num_samples = samples}),
            "num_samples is " + std::to_string(samples) +
                "; it must be at least 1, or -1 for endless"
        );
    }
}

}  // namespace
}  // namespace muster
