// SPDX-License-Identifier: Apache-2.0
//
// What a space and points in it are refused for, and the words.

#include "search/search_space_check.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string refusal(const Status& status) {
    return status ? "accepted" : status.error().message;
}

std::string refusal_of(const Domain& domain) {
    return refusal(validate(SearchSpace{{{.key = "x", .domain = domain}}}));
}

std::string refusal_of_point(const SearchSpace& space, const std::vector<ValueMember>& point) {
    return refusal(validate_points(space, {point}));
}

Parameter constant(const char* key, const Value& value) {
    return {.key = key, .domain = Constant{value}};
}

Parameter formula(const char* key, const char* text) {
    return {.key = key, .domain = Expression{text}};
}

/// A space with one parameter of each kind.
SearchSpace full_space() {
    return {{
        {.key = "lr", .domain = RealDomain{.lower = 1e-4, .upper = 0.1, .log = true}},
        {.key = "dropout", .domain = RealDomain{.lower = 0, .upper = 0.5, .q = 0.1}},
        {.key = "hidden", .domain = IntDomain{.lower = 8, .upper = 64, .q = 8}},
        {.key = "layers", .domain = IntDomain{.lower = 1, .upper = 4}},
        {.key = "noise", .domain = NormalDomain{.mean = 0, .sd = 1}},
        {.key = "optimizer", .domain = Choice{{"sgd", "adam"}}},
        {.key = "momentum",
         .domain = RealDomain{.lower = 0, .upper = 0.99},
         .when = {{.key = "optimizer", .any_of = {"sgd"}}}},
        {.key = "batch", .domain = Grid{{64, 128}}},
        {.key = "warmup", .domain = Expression{"lr * 10"}},
        {.key = "augment/flip", .domain = Choice{{true, false}}},
        {.key = "epochs", .domain = Constant{20}},
    }};
}

TEST(SearchSpaceCheckTest, AFullSpaceIsAccepted) {
    EXPECT_EQ(refusal(validate(full_space())), "accepted");
    EXPECT_EQ(refusal(validate(SearchSpace{})), "accepted");
}

TEST(SearchSpaceCheckTest, RealBoundsMustHoldSomething) {
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 1, .upper = 1}),
        "x: uniform [1.0, 1.0]: the lower bound 1.0 must be below the upper bound 1.0"
    );
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 0, .upper = 1, .log = true}),
        "x: loguniform [0.0, 1.0]: a logarithmic range needs a lower bound above 0, not 0.0"
    );
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 0, .upper = kInfinity}),
        "x: uniform [0.0, \"inf\"]: bounds and q must be finite numbers"
    );
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 0, .upper = 1, .q = -0.1}),
        "x: quniform [0.0, 1.0, -0.1]: q must be above 0"
    );
}

TEST(SearchSpaceCheckTest, RealBoundsMustBeMultiplesOfQ) {
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 0, .upper = 0.25, .q = 0.1}),
        "x: quniform [0.0, 0.25, 0.1]: 0.25 is not a multiple of q; 0.2 or 0.3 would be"
    );
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 1e-7, .upper = 1, .q = 1, .log = true}),
        "x: qloguniform [1e-07, 1.0, 1.0]: a logarithmic range needs a lower bound of at least q"
    );
    EXPECT_EQ(
        refusal_of(RealDomain{.lower = 0, .upper = 1e300, .q = 1}),
        "x: quniform [0.0, 1e+300, 1.0]: q is too small beside the bounds; at most 2^53 multiples"
    );
    EXPECT_EQ(refusal_of(RealDomain{.lower = 0.1, .upper = 0.7, .q = 0.1}), "accepted");
    EXPECT_EQ(refusal_of(RealDomain{.lower = 0, .upper = 1e6, .q = 1e-6}), "accepted");
}

TEST(SearchSpaceCheckTest, WholeBoundsAreHeldToTheSame) {
    EXPECT_EQ(
        refusal_of(IntDomain{.lower = 3, .upper = 3}),
        "x: randint [3, 3]: the lower bound 3 must be below the upper bound 3"
    );
    EXPECT_EQ(
        refusal_of(IntDomain{.lower = 0, .upper = 8, .log = true}),
        "x: lograndint [0, 8]: a logarithmic range needs a lower bound above 0, not 0"
    );
    EXPECT_EQ(
        refusal_of(IntDomain{.lower = 0, .upper = 10, .q = 4}),
        "x: qrandint [0, 10, 4]: 10 is not a multiple of q; 8 or 12 would be"
    );
    EXPECT_EQ(
        refusal_of(IntDomain{.lower = -10, .upper = 8, .q = 4}),
        "x: qrandint [-10, 8, 4]: -10 is not a multiple of q; -12 or -8 would be"
    );
    EXPECT_EQ(
        refusal_of(IntDomain{.lower = 0, .upper = 10, .q = -1}),
        "x: qrandint [0, 10, -1]: q must be at least 1"
    );
}

TEST(SearchSpaceCheckTest, NormalsAndListsAreChecked) {
    EXPECT_EQ(
        refusal_of(NormalDomain{.sd = 0}),
        "x: randn [0.0, 0.0]: the standard deviation must be above 0"
    );
    EXPECT_EQ(
        refusal_of(NormalDomain{.mean = 1e300, .sd = 1, .q = 1}),
        "x: qrandn [1e+300, 1.0, 1.0]: q is too small beside mean and standard deviation"
    );
    EXPECT_EQ(
        refusal_of(NormalDomain{.mean = kInfinity}),
        "x: randn [\"inf\", 1.0]: mean, standard deviation and q must be finite numbers, below "
        "1e306"
    );
    EXPECT_EQ(refusal_of(Choice{}), "x: choice []: the list needs at least one value");
    EXPECT_EQ(refusal_of(Grid{}), "x: grid []: the list needs at least one value");
    EXPECT_EQ(refusal_of(SampleFrom{}), "x: a function: there is none");
}

TEST(SearchSpaceCheckTest, KeysDifferAndAreNotGroupsAsWell) {
    EXPECT_EQ(
        refusal(validate(SearchSpace{{constant("a", 1), constant("a", 2)}})),
        "a: the key is there twice; rename one of them"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{{constant("a/b/c", 1), constant("a/b", 2)}})),
        "a/b: it has a value and is also the group of 'a/b/c'; rename one of them"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{{constant("a/b", 1), constant("a-b", 2), constant("ab", 3)}})),
        "accepted"
    );
    for (const char* key : {"", "/a", "a/", "a//b"}) {
        EXPECT_EQ(
            refusal(validate(SearchSpace{{constant(key, 1)}})),
            "'" + std::string(key) + "': a key needs a name before and after each '/'"
        );
    }
}

TEST(SearchSpaceCheckTest, ConditionsNameKeysAndPossibleValues) {
    SearchSpace space = full_space();
    Conditions& when = space.parameters[6].when;

    when = {{.key = "optimiser", .any_of = {"sgd"}}};
    EXPECT_EQ(
        refusal(validate(space)),
        "momentum: `when` names 'optimiser', which is no key of the space; did you mean "
        "'optimizer'?"
    );
    when = {{.key = "optimizer", .any_of = {"sdg"}}};
    EXPECT_EQ(
        refusal(validate(space)),
        "momentum: `when` could never hold for 'optimizer': \"sdg\" is not in choice [\"sgd\", "
        "\"adam\"]; give one of these"
    );
    when = {{.key = "optimizer", .any_of = {}}};
    EXPECT_EQ(
        refusal(validate(space)),
        "momentum: `when` names no value of 'optimizer'; at least one is needed"
    );
    when = {{.key = "layers", .any_of = {4}}};
    EXPECT_EQ(
        refusal(validate(space)),
        "momentum: `when` could never hold for 'layers': 4 is not in randint [1, 4]; give a whole "
        "number from 1 to 3"
    );
}

TEST(SearchSpaceCheckTest, FormulasNameKeys) {
    EXPECT_EQ(
        refusal(validate(SearchSpace{{constant("lr", 1), formula("w", "l * 10")}})),
        "w: 'l * 10' names 'l', which is no key of the space; did you mean 'lr'?"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{{formula("w", "1 if True else 2")}})),
        "w: '1 if True else 2' names 'True', which is no key of the space; did you mean 'true'?"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{{formula("w", "1 +")}})),
        "w: '1 +': at position 4: expected a number, a text, a key, a function or '(', found the "
        "end"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{
            {{.key = "f", .domain = SampleFrom{[](const Config&) { return Value(1); }, {"a"}}}}})),
        "f: the function names 'a', which is no key of the space"
    );
}

TEST(SearchSpaceCheckTest, KeysThatDependOnEachOtherAreNamedInOrder) {
    EXPECT_EQ(
        refusal(validate(SearchSpace{{formula("a", "a + 1")}})),
        "a: its value depends on itself: a -> a"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{
            {formula("z", "c"), formula("a", "b + 1"), formula("b", "c"), formula("c", "a")}})),
        "c: its value depends on itself: c -> a -> b -> c"
    );
    EXPECT_EQ(
        refusal(validate(SearchSpace{
            {{.key = "a", .domain = Constant{1}, .when = {{.key = "b", .any_of = {1}}}},
             formula("b", "a")}})),
        "a: its value depends on itself: a -> b -> a"
    );
}

TEST(SearchSpaceCheckTest, AGridsConditionRestsOnGridsAndConstants) {
    const Parameter grid{
        .key = "momentum", .domain = Grid{{0.5, 0.9}}, .when = {{.key = "opt", .any_of = {"sgd"}}}};
    const SearchSpace drawn{{{.key = "opt", .domain = Choice{{"sgd", "adam"}}}, grid}};
    const SearchSpace crossed{{{.key = "opt", .domain = Grid{{"sgd", "adam"}}}, grid}};

    EXPECT_EQ(
        refusal(validate(drawn, {})),
        "momentum: a grid's `when` may rest on grids and constants alone, and 'opt' is choice "
        "[\"sgd\", \"adam\"]; make 'opt' a grid, or 'momentum' a choice"
    );
    EXPECT_EQ(refusal(validate(crossed, {})), "accepted");
    EXPECT_EQ(refusal(validate(drawn, {.algorithm = SearchAlgorithm::Grid})), "accepted");
}

TEST(SearchSpaceCheckTest, AlgorithmGridRefusesWhatIsDrawnFromARange) {
    const SearchSpace space{{{.key = "n", .domain = IntDomain{.lower = 1, .upper = 4}}}};

    EXPECT_EQ(
        refusal(validate(space, {.algorithm = SearchAlgorithm::Grid})),
        "n: randint [1, 4] is drawn at random, which algorithm grid does not do; list its values "
        "in a grid or choice, or take algorithm random (it crosses grids as well)"
    );
    EXPECT_EQ(refusal(validate(space, {.algorithm = SearchAlgorithm::Random})), "accepted");
}

TEST(SearchSpaceCheckTest, PointsInsideTheSpaceAreAccepted) {
    const SearchSpace space = full_space();

    for (const std::vector<ValueMember>& point : std::vector<std::vector<ValueMember>>{
             {},
             {{"lr", 0.1}, {"hidden", 64}, {"layers", 3}},
             {{"dropout", 0.3}, {"dropout", 0}},
             {{"noise", -3}, {"optimizer", "sgd"}, {"momentum", 0}},
             {{"batch", 128.0}, {"augment/flip", false}, {"epochs", 20}},
         }) {
        if (point.size() == 2 && point[0].key == point[1].key) {
            EXPECT_EQ(refusal_of_point(space, point), "points[0].dropout: the key is there twice");
        } else {
            EXPECT_EQ(refusal_of_point(space, point), "accepted");
        }
    }
}

TEST(SearchSpaceCheckTest, PointsOutsideTheSpaceAreRefused) {
    struct Case {
        ValueMember member;
        const char* message;
    };
    const std::vector<Case> cases{
        {{"l", 0.1}, "points[0].l: there is no such key in the space; did you mean 'lr'?"},
        {{"lr", 1},
         "points[0].lr: 1 is not in loguniform [0.0001, 0.1]; give a number from 0.0001 to 0.1"},
        {{"lr", "0.1"},
         "points[0].lr: \"0.1\" is not in loguniform [0.0001, 0.1]; give a number from 0.0001 to "
         "0.1"},
        {{"lr", true},
         "points[0].lr: true is not in loguniform [0.0001, 0.1]; give a number from 0.0001 to 0.1"},
        {{"dropout", 0.25},
         "points[0].dropout: 0.25 is not in quniform [0.0, 0.5, 0.1]; give a multiple such as 0.2 "
         "or "
         "0.3"},
        {{"hidden", 65},
         "points[0].hidden: 65 is not in qrandint [8, 64, 8]; give a whole number from 8 to 64"},
        {{"hidden", 60},
         "points[0].hidden: 60 is not in qrandint [8, 64, 8]; give a multiple such as 56 or 64"},
        {{"layers", 4},
         "points[0].layers: 4 is not in randint [1, 4]; give a whole number from 1 to 3"},
        {{"layers", 2.0},
         "points[0].layers: 2.0 is not in randint [1, 4]; give a whole number from 1 to 3"},
        {{"noise", kInfinity},
         "points[0].noise: \"inf\" is not in randn [0.0, 1.0]; give a finite number"},
        {{"optimizer", "rmsprop"},
         "points[0].optimizer: \"rmsprop\" is not in choice [\"sgd\", \"adam\"]; give one of "
         "these"},
        {{"batch", 32}, "points[0].batch: 32 is not in grid [64, 128]; give one of these"},
        {{"augment/flip", 1},
         "points[0].augment/flip: 1 is not in choice [true, false]; give one of these"},
        {{"epochs", 30}, "points[0].epochs: 30 is not 20, which it always is"},
        {{"warmup", 1}, "points[0].warmup: its value is computed (expr 'lr * 10'); leave it out"},
        {{"momentum", 0.5},
         "points[0].momentum: it has a value only where 'optimizer' is \"sgd\", and the point does "
         "not say so; add it to the point"},
    };
    for (const Case& one : cases) {
        EXPECT_EQ(refusal_of_point(full_space(), {one.member}), one.message);
    }
    EXPECT_EQ(
        refusal_of_point(full_space(), {{"momentum", 0.5}, {"optimizer", "adam"}}),
        "points[0].momentum: it has a value only where 'optimizer' is \"sgd\", and the point says "
        "\"adam\""
    );
    EXPECT_EQ(
        refusal(validate_points(full_space(), {{{"lr", 0.1}}, {{"lr", 2}}})),
        "points[1].lr: 2 is not in loguniform [0.0001, 0.1]; give a number from 0.0001 to 0.1"
    );
}

}  // namespace
}  // namespace muster
