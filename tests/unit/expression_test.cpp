// SPDX-License-Identifier: Apache-2.0
//
// Formulas: what they give, and what is said when they give nothing.

#include "search/expression.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "muster/config.hpp"

#include "base/random.hpp"

namespace muster {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The value of a formula whose keys have the values of `config`, as JSON, or the error.
std::string value_of(const std::string& text, const Config& config = {}) {
    const Result<Formula> formula = Formula::parse(text);
    if (!formula) {
        return "refused: " + formula.error().message;
    }
    std::vector<const Value*> values;
    for (const std::string& key : formula->keys()) {
        values.push_back(config.find(key));
    }
    const Result<Value> value = formula->evaluate(values);
    return value ? to_json(*value) : "error: " + value.error().message;
}

struct Case {
    const char* text;
    const char* value;
};

void expect_all(const std::vector<Case>& cases, const Config& config = {}) {
    for (const Case& one : cases) {
        EXPECT_EQ(value_of(one.text, config), one.value) << one.text;
    }
}

TEST(ExpressionTest, WholeNumbersStayWhole) {
    expect_all({
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"7 - 2 - 1", "4"},
        {"7 // 2", "3"},
        {"-7 // 2", "-4"},
        {"7 // -2", "-4"},
        {"7 % 3", "1"},
        {"-7 % 3", "2"},
        {"7 % -3", "-2"},
        {"2 ** 10", "1024"},
        {"2 ** 3 ** 2", "512"},
        {"-2 ** 2", "-4"},
        {"+5", "5"},
        {"- - 5", "5"},
        {"abs(-3)", "3"},
        {"min(3, 1, 2)", "1"},
        {"max(3, 4.5)", "4.5"},
        {"max(3, 3.0)", "3"},
    });
}

TEST(ExpressionTest, RealNumbersComeFromDivisionAndFromReals) {
    expect_all({
        {"6 / 3", "2.0"},
        {"1 / 4", "0.25"},
        {"1 + 0.5", "1.5"},
        {"2 ** -1", "0.5"},
        {"2 ** 0.5 == sqrt(2)", "true"},
        {"7.5 // 2", "3.0"},
        {"-7.5 // 2", "-4.0"},
        {"7.5 % 2", "1.5"},
        {"-7.5 % 2", "0.5"},
        {"1 // 0.1", "9.0"},
        {".5 + 1e-1", "0.6"},
        {"1e3", "1000.0"},
        {"pow(2, 3)", "8"},
        {"pow(2.0, 3)", "8.0"},
        {"exp(0)", "1.0"},
        {"log(1)", "0.0"},
        {"log2(8)", "3.0"},
        {"log10(1000)", "3.0"},
    });
}

TEST(ExpressionTest, RoundingGivesWholeNumbers) {
    expect_all({
        {"round(2.5)", "2"},
        {"round(3.5)", "4"},
        {"round(-2.6)", "-3"},
        {"floor(-2.5)", "-3"},
        {"ceil(2.1)", "3"},
        {"int(-2.9)", "-2"},
        {"int('12')", "12"},
        {"int(true)", "1"},
        {"float(3)", "3.0"},
        {"float('1e-3')", "0.001"},
        {"str(0.1) + 'x'", "\"0.1x\""},
        {"str('a')", "\"a\""},
        {"round(7)", "7"},
    });
}

TEST(ExpressionTest, TruthsAreComparedAndCombined) {
    expect_all({
        {"1 < 2 and 2 <= 2", "true"},
        {"1 > 2 or 3 >= 4", "false"},
        {"not 1 == 1.0", "false"},
        {"not not true", "true"},
        {"1 == true", "false"},
        {"'a' < 'b'", "true"},
        {"'1' == 1", "false"},
        {"null == null", "true"},
        {"1 != 2", "true"},
        {"9007199254740993 == 9007199254740992.0", "false"},
        {"false and 1 / 0 > 0", "false"},
        {"true or 1 / 0 > 0", "true"},
        {"false or false and true", "false"},
        {"true or false and false", "true"},
    });
}

TEST(ExpressionTest, AChoiceEvaluatesOneSideAlone) {
    expect_all({
        {"1 if true else 1 / 0", "1"},
        {"1 / 0 if false else 2", "2"},
        {"1 if false else 2 if false else 3", "3"},
        {"1 if false else 2 if true else 3", "2"},
        {"(1 if true else 2) + 10", "11"},
        {"1 + 1 if true else 0", "2"},
        {"'a' if (1 if true else 2) == 1 else 'b'", "\"a\""},
    });
}

TEST(ExpressionTest, KeysAreNamedPlainlyOrByGroupOrInBackticks) {
    const Config config = Config::from_members({
        {"lr", 0.1},
        {"augment/flip", true},
        {"odd key", 3},
        {"min", 5},
        {"sizes", Value::List{1, 2}},
    });

    expect_all(
        {
            {"lr * 10", "1.0"},
            {"1 if augment.flip else 0", "1"},
            {"1 if `augment/flip` else 0", "1"},
            {"`odd key` / 2", "1.5"},
            {"min + min(1, 2)", "6"},
            {"sizes", "[1, 2]"},
            {"absent == null", "true"},
        },
        config
    );
    EXPECT_EQ(
        Formula::parse("b * a + b - g.x")->keys(), (std::vector<std::string>{"b", "a", "g/x"})
    );
}

TEST(ExpressionTest, OverflowIsAnError) {
    const Config config = Config::from_members({{"most", kMost}, {"least", -kMost - 1}});
    const std::string whole = "does not fit a whole number of 64 bits";
    for (const char* text :
         {"most + 1",
          "least - 1",
          "most * 2",
          "-least",
          "abs(least)",
          "least // -1",
          "2 ** 63",
          "(-2) ** 64",
          "int(1e19)",
          "round(1e300)",
          "floor(-1e19)"}) {
        EXPECT_NE(value_of(text, config).find(whole), std::string::npos) << value_of(text, config);
    }
    EXPECT_EQ(value_of("(-2) ** 63", config), std::to_string(-kMost - 1));
    EXPECT_EQ(value_of("least % -1", config), "0");
    EXPECT_NE(value_of("1e308 * 10").find("does not fit a real number"), std::string::npos);
    EXPECT_NE(value_of("exp(1000)").find("does not fit a real number"), std::string::npos);
    EXPECT_NE(value_of("99999999999999999999").find("does not fit 64 bits"), std::string::npos);
}

TEST(ExpressionTest, ErrorsWhenEvaluatedNameTheFormulaAndItsValues) {
    const Config config = Config::from_members({{"a", 1}, {"b", 0}, {"name", "x"}});

    expect_all(
        {
            {"a / b", "error: 'a / b': division by zero, where a is 1, b is 0"},
            {"a // b", "error: 'a // b': division by zero, where a is 1, b is 0"},
            {"a % 0.0", "error: 'a % 0.0': division by zero, where a is 1"},
            {"b ** -1", "error: 'b ** -1': division by zero (0 to a negative power), where b is 0"},
            {"log(b)", "error: 'log(b)': log has no value there, where b is 0"},
            {"sqrt(-a)", "error: 'sqrt(-a)': sqrt has no value there, where a is 1"},
            {"name * 2",
             "error: 'name * 2': * takes two numbers, not \"x\" and 2, where name is \"x\""},
            {"name + 2",
             "error: 'name + 2': + takes two numbers or two texts, not \"x\" and 2, where name is "
             "\"x\""},
            {"gone * 2",
             "error: 'gone * 2': * takes two numbers, not null and 2, where gone has no value"},
            {"true + 1", "error: 'true + 1': + takes two numbers or two texts, not true and 1"},
            {"1 if a else 2",
             "error: '1 if a else 2': if takes true or false, not 1, where a is 1"},
            {"not a", "error: 'not a': not takes true or false, not 1, where a is 1"},
            {"true and a", "error: 'true and a': and/or takes true or false, not 1, where a is 1"},
            {"a or true", "error: 'a or true': or takes true or false, not 1, where a is 1"},
            {"a < name",
             "error: 'a < name': < compares two numbers or two texts, not 1 with \"x\", where a is "
             "1, name is \"x\""},
            {"int('1x')",
             "error: 'int('1x')': int takes a number or a text that is one, not \"1x\""},
        },
        config
    );
}

TEST(ExpressionTest, ErrorsInTheTextNameThePositionAndWhatWasExpected) {
    expect_all({
        {"",
         "refused: '': at position 1: expected a number, a text, a key, a function or '(', "
         "found the end"},
        {"lr *",
         "refused: 'lr *': at position 5: expected a number, a text, a key, a function or "
         "'(', found the end"},
        {"(1 + 2", "refused: '(1 + 2': at position 7: expected ')', found the end"},
        {"1 2", "refused: '1 2': at position 3: expected an operator or the end, found '2'"},
        {"1 if true", "refused: '1 if true': at position 10: expected 'else', found the end"},
        {"10x",
         "refused: '10x': at position 3: a number ends here; an operator such as '*' is missing"},
        {"1e+", "refused: '1e+': at position 4: the exponent of a number needs digits"},
        {"a = 1", "refused: 'a = 1': at position 3: '=' is not known; equality is written '=='"},
        {"a ^ 2", "refused: 'a ^ 2': at position 3: '^' is not known; a power is written '**'"},
        {"a && b", "refused: 'a && b': at position 3: '&&' is not known; write 'and'"},
        {"1 < 2 < 3",
         "refused: '1 < 2 < 3': at position 7: comparisons do not chain; write 'a < b "
         "and b < c' for a < b < c"},
        {"'abc", "refused: ''abc': at position 1: the text that begins here has no closing '"},
        {"`abc", "refused: '`abc': at position 1: the key that begins here has no closing `"},
        {"sqrt(1, 2)", "refused: 'sqrt(1, 2)': at position 1: sqrt takes 1, not 2"},
        {"min(1)", "refused: 'min(1)': at position 1: min takes at least 2, not 1"},
        {"and",
         "refused: 'and': at position 1: expected a number, a text, a key, a function or "
         "'(', found 'and'"},
    });
    EXPECT_NE(
        value_of("sqr(2)").find("no function 'sqr'; did you mean 'sqrt'?"), std::string::npos
    );
    EXPECT_NE(value_of("a @ b").find("at position 3: expected a number"), std::string::npos);
    EXPECT_NE(value_of("'\\q'").find("after a backslash"), std::string::npos);
}

TEST(ExpressionTest, TextMayHoldQuotesAndUtf8) {
    expect_all({
        {"'it''s'",
         "refused: ''it''s'': at position 5: expected an operator or the end, found "
         "''s''"},
        {R"('it\'s')", R"("it's")"},
        {R"("tab\t")", R"("tab\t")"},
        {"'gr\xc3\xbc\xc3\x9f' + 'e'",
         "\"gr\xc3\xbc\xc3\x9f"
         "e\""},
    });
}

TEST(ExpressionTest, DeepNestingIsRefusedAndLengthIsNot) {
    const auto repeated = [](const std::string& text, int times) {
        std::string all;
        for (int time = 0; time < times; ++time) {
            all += text;
        }
        return all;
    };

    for (const char* opening : {"(", "-", "not ", "2 ** ", "abs(", "1 if true else "}) {
        const std::string message = value_of(repeated(opening, 100'000) + "1");
        EXPECT_NE(message.find("more than 100 levels within each other"), std::string::npos);
    }
    EXPECT_EQ(value_of(repeated("(", 90) + "1" + repeated(")", 90)), "1");
    EXPECT_EQ(value_of("0" + repeated(" + 1", 100'000)), "100000");
}

TEST(ExpressionTest, AnyTextIsReadOrRefused) {
    const std::vector<std::string> pieces{
        "1", "0",   "2.5", "-",  "+",  "*",   "/",   "//",   "%",    "**",    "(",    ")",
        ",", "<",   "==",  "if", "or", "and", "not", "else", "true", "null",  "min(", "int(",
        "a", "g.k", "'t'", "`",  "'",  "abs", " ",   ".",    "\\",   "1e308", "log(", "\xff"};
    const Config config = Config::from_members({{"a", -kMost - 1}, {"g/k", 0.5}});
    RandomStream random(7);
    int evaluated = 0;

    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (std::uint64_t left = 1 + random.below(12); left > 0; --left) {
            text += pieces[random.below(pieces.size())] + (random.below(2) == 0 ? " " : "");
        }
        evaluated += value_of(text, config).rfind("refused: ", 0) == 0 ? 0 : 1;
    }

    EXPECT_GT(evaluated, 500);
}

}  // namespace
}  // namespace muster
