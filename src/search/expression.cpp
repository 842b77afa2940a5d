// SPDX-License-Identifier: Apache-2.0
//
// Recursive descent, one function a level of precedence, loosest first. What is parsed is appended
// to the code at once, so there is no tree; only `a if c else b` moves what it has already written.

#include "search/expression.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "search/formula_lexer.hpp"

namespace muster {
namespace {

// Levels of brackets, signs and choices within each other. A level takes about ten calls, so this
// stays far below a megabyte of stack.
constexpr std::size_t kDeepest = 100;

struct Function {
    std::string_view name;
    OpCode code;
    std::size_t fewest;
    std::size_t most;
};

constexpr std::size_t kAnyNumber = 1'000'000;

constexpr std::array<Function, 15> kFunctions{{
    {"min", OpCode::Minimum, 2, kAnyNumber},
    {"max", OpCode::Maximum, 2, kAnyNumber},
    {"abs", OpCode::Absolute, 1, 1},
    {"round", OpCode::Round, 1, 1},
    {"floor", OpCode::Floor, 1, 1},
    {"ceil", OpCode::Ceil, 1, 1},
    {"sqrt", OpCode::SquareRoot, 1, 1},
    {"exp", OpCode::Exponential, 1, 1},
    {"log", OpCode::Logarithm, 1, 1},
    {"log2", OpCode::Logarithm2, 1, 1},
    {"log10", OpCode::Logarithm10, 1, 1},
    {"pow", OpCode::Power, 2, 2},
    {"int", OpCode::ToInt, 1, 1},
    {"float", OpCode::ToReal, 1, 1},
    {"str", OpCode::ToText, 1, 1},
}};

constexpr std::array<std::string_view, 5> kWords{"and", "or", "not", "if", "else"};

bool is_word(const Token& token) {
    return token.kind == TokenKind::Name &&
           std::find(kWords.begin(), kWords.end(), token.text) != kWords.end();
}

std::optional<OpCode> comparison(const Token& token) {
    static constexpr std::array<OpCode, 6> kComparisons{
        OpCode::Equal,
        OpCode::NotEqual,
        OpCode::LessEqual,
        OpCode::GreaterEqual,
        OpCode::Less,
        OpCode::Greater};
    for (const OpCode code : kComparisons) {
        if (token.kind == TokenKind::Sign && token.text == symbol(code)) {
            return code;
        }
    }
    return std::nullopt;
}

}  // namespace

/// Each parse_ function appends the code of what it reads, and is false after an error.
class FormulaParser {
  public:
    explicit FormulaParser(std::string_view text) : lexer_(text) { formula_.text_ = text; }

    Result<Formula> parse() {
        if (!advance() || !parse_choice()) {
            return *error_;
        }
        if (token_.kind != TokenKind::End) {
            fail_expecting("an operator or the end");
            return *error_;
        }
        return std::move(formula_);
    }

  private:
    bool advance() {
        Result<Token> next = lexer_.next();
        if (!next) {
            error_ = next.error();
            return false;
        }
        token_ = *std::move(next);
        return true;
    }

    bool fail(std::size_t position, std::string_view what) {
        error_ = lexer_.error_at(position, what);
        return false;
    }

    bool fail_expecting(std::string_view wanted) {
        const bool ended = token_.kind == TokenKind::End;
        const std::string found = ended ? "the end" : "'" + token_.text + "'";
        return fail(token_.position, fmt::format("expected {}, found {}", wanted, found));
    }

    bool at_sign(std::string_view sign) const {
        return token_.kind == TokenKind::Sign && token_.text == sign;
    }

    bool at_word(std::string_view word) const {
        return token_.kind == TokenKind::Name && token_.text == word;
    }

    void emit(OpCode code, std::size_t operand = 0) {
        formula_.code_.push_back({code, static_cast<std::uint32_t>(operand)});
    }

    bool emit_constant(Value value) {
        emit(OpCode::Constant, formula_.constants_.size());
        formula_.constants_.push_back(std::move(value));
        return true;
    }

    bool emit_key(std::string key) {
        std::vector<std::string>& keys = formula_.keys_;
        const auto found = std::find(keys.begin(), keys.end(), key);
        emit(OpCode::Key, static_cast<std::size_t>(found - keys.begin()));
        if (found == keys.end()) {
            keys.push_back(std::move(key));
        }
        return true;
    }

    /// A jump, to be given its length by land().
    std::size_t emit_jump(OpCode code) {
        emit(code);
        return formula_.code_.size() - 1;
    }

    void land(std::size_t jump) {
        formula_.code_[jump].operand = static_cast<std::uint32_t>(formula_.code_.size() - jump - 1);
    }

    /// Parses one level deeper.
    bool deeper(bool (FormulaParser::*level)()) {
        if (depth_ == kDeepest) {
            return fail(
                token_.position, fmt::format("more than {} levels within each other", kDeepest)
            );
        }
        ++depth_;
        const bool parsed = (this->*level)();
        --depth_;
        return parsed;
    }

    bool parse_choice() {
        const std::size_t start = formula_.code_.size();
        if (!parse_or()) {
            return false;
        }
        if (!at_word("if")) {
            return true;
        }
        // The condition comes first when it runs; jumps are relative, so the value can be moved.
        std::vector<Instruction>& code = formula_.code_;
        const auto written = code.begin() + static_cast<std::ptrdiff_t>(start);
        const std::vector<Instruction> value(written, code.end());
        code.erase(written, code.end());
        if (!advance() || !parse_or()) {
            return false;
        }
        if (!at_word("else")) {
            return fail_expecting("'else'");
        }
        const std::size_t unless = emit_jump(OpCode::Unless);
        code.insert(code.end(), value.begin(), value.end());
        const std::size_t jump = emit_jump(OpCode::Jump);
        land(unless);
        if (!advance() || !deeper(&FormulaParser::parse_choice)) {
            return false;
        }
        land(jump);
        return true;
    }

    bool parse_or() { return parse_truths(OpCode::Or, &FormulaParser::parse_and); }
    bool parse_and() { return parse_truths(OpCode::And, &FormulaParser::parse_not); }

    bool parse_truths(OpCode code, bool (FormulaParser::*operand)()) {
        if (!(this->*operand)()) {
            return false;
        }
        while (at_word(symbol(code))) {
            const std::size_t jump = emit_jump(code);
            if (!advance() || !(this->*operand)()) {
                return false;
            }
            emit(OpCode::RequireTruth);
            land(jump);
        }
        return true;
    }

    bool parse_not() {
        if (!at_word("not")) {
            return parse_comparison();
        }
        if (!advance() || !deeper(&FormulaParser::parse_not)) {
            return false;
        }
        emit(OpCode::Not);
        return true;
    }

    bool parse_comparison() {
        if (!parse_sum()) {
            return false;
        }
        const std::optional<OpCode> code = comparison(token_);
        if (!code) {
            return true;
        }
        if (!advance() || !parse_sum()) {
            return false;
        }
        emit(*code);
        if (comparison(token_)) {
            return fail(
                token_.position, "comparisons do not chain; write 'a < b and b < c' for a < b < c"
            );
        }
        return true;
    }

    bool parse_sum() {
        return parse_left({OpCode::Add, OpCode::Subtract}, &FormulaParser::parse_product);
    }

    bool parse_product() {
        return parse_left(
            {OpCode::Multiply, OpCode::Divide, OpCode::FloorDivide, OpCode::Modulo},
            &FormulaParser::parse_signed
        );
    }

    /// Operators of one precedence, from left to right.
    bool parse_left(std::initializer_list<OpCode> codes, bool (FormulaParser::*operand)()) {
        if (!(this->*operand)()) {
            return false;
        }
        while (true) {
            const auto* const code = std::find_if(codes.begin(), codes.end(), [&](OpCode one) {
                return at_sign(symbol(one));
            });
            if (code == codes.end()) {
                return true;
            }
            if (!advance() || !(this->*operand)()) {
                return false;
            }
            emit(*code);
        }
    }

    bool parse_signed() {
        if (!at_sign("-") && !at_sign("+")) {
            return parse_power();
        }
        const OpCode code = at_sign("-") ? OpCode::Negate : OpCode::Plus;
        if (!advance() || !deeper(&FormulaParser::parse_signed)) {
            return false;
        }
        emit(code);
        return true;
    }

    /// Binds closer than a sign before it, not than one after it: -2 ** -1 is -(2 ** (-1)).
    bool parse_power() {
        if (!parse_operand()) {
            return false;
        }
        if (!at_sign("**")) {
            return true;
        }
        if (!advance() || !deeper(&FormulaParser::parse_signed)) {
            return false;
        }
        emit(OpCode::Power);
        return true;
    }

    bool parse_operand() {
        const Token token = token_;
        if (token.kind == TokenKind::Literal) {
            return advance() && emit_constant(token.value);
        }
        if (token.kind == TokenKind::QuotedKey) {
            return advance() && emit_key(token.text);
        }
        if (at_sign("(")) {
            return advance() && deeper(&FormulaParser::parse_choice) && expect_closing();
        }
        if (token.kind != TokenKind::Name || is_word(token)) {
            return fail_expecting("a number, a text, a key, a function or '('");
        }
        if (!advance()) {
            return false;
        }
        if (at_sign("(")) {
            return parse_call(token);
        }
        if (token.text == "true" || token.text == "false") {
            return emit_constant(token.text == "true");
        }
        if (token.text == "null") {
            return emit_constant({});
        }
        std::string key = token.text;
        std::replace(key.begin(), key.end(), '.', '/');
        return emit_key(std::move(key));
    }

    bool expect_closing() { return at_sign(")") ? advance() : fail_expecting("')'"); }

    bool parse_call(const Token& name) {
        const auto* const function =
            std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& one) {
                return one.name == name.text;
            });
        if (function == kFunctions.end()) {
            return fail_unknown_function(name);
        }
        std::size_t arguments = 0;
        do {
            // Past the opening bracket or a comma.
            if (!advance() || !deeper(&FormulaParser::parse_choice)) {
                return false;
            }
            ++arguments;
        } while (at_sign(","));
        if (!expect_closing()) {
            return false;
        }
        if (arguments < function->fewest || arguments > function->most) {
            return fail(
                name.position,
                fmt::format(
                    "{} takes {}{}, not {}",
                    name.text,
                    function->most == kAnyNumber ? "at least " : "",
                    function->fewest,
                    arguments
                )
            );
        }
        emit(function->code, arguments);
        return true;
    }

    bool fail_unknown_function(const Token& name) {
        std::vector<std::string> known;
        known.reserve(kFunctions.size());
        for (const Function& function : kFunctions) {
            known.emplace_back(function.name);
        }
        return fail(
            name.position,
            fmt::format(
                "no function '{}'{}; there are {}",
                name.text,
                did_you_mean(name.text, known),
                fmt::join(known, ", ")
            )
        );
    }

    FormulaLexer lexer_;
    Token token_;
    Formula formula_;
    std::optional<Error> error_;
    std::size_t depth_ = 0;
};

Result<Formula> Formula::parse(std::string_view text) {
    return FormulaParser(text).parse();
}

}  // namespace muster
