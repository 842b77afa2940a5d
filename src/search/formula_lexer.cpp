// SPDX-License-Identifier: Apache-2.0

#include "search/formula_lexer.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace muster {
namespace {

// Not <cctype>: what a letter is must not depend on the locale.
bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

bool begins_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

bool is_blank(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

// Longer signs come first.
constexpr std::array<std::string_view, 16>
    kSigns{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", ","};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kHints{{
    {"&&", "write 'and'"},
    {"||", "write 'or'"},
    {"^", "a power is written '**'"},
    {"!", "write 'not'"},
    {"=", "equality is written '=='"},
}};

/// The letter that a backslash and `letter` stand for, or 0.
char unescaped(char letter) {
    switch (letter) {
        case 'n':
            return '\n';
        case 't':
            return '\t';
        case '\\':
        case '\'':
        case '"':
            return letter;
        default:
            return '\0';
    }
}

}  // namespace

Error FormulaLexer::error_at(std::size_t position, std::string_view what) const {
    return {
        ErrorCode::InvalidInput,
        fmt::format("'{}': at position {}: {}", text_, position + 1, what)};
}

Result<Token> FormulaLexer::next() {
    while (here_ < text_.size() && is_blank(text_[here_])) {
        ++here_;
    }
    if (here_ == text_.size()) {
        return Token{TokenKind::End, here_, {}, {}};
    }
    const char letter = text_[here_];
    if (is_digit(letter) || (letter == '.' && is_digit(at(here_ + 1)))) {
        return number();
    }
    if (letter == '\'' || letter == '"') {
        return quoted_text();
    }
    if (letter == '`') {
        return quoted_key();
    }
    if (begins_name(letter)) {
        return name();
    }
    return sign();
}

Result<Token> FormulaLexer::number() {
    const std::size_t start = here_;
    const auto skip_digits = [&] {
        while (is_digit(at(here_))) {
            ++here_;
        }
    };
    skip_digits();
    bool real = false;
    if (at(here_) == '.') {
        real = true;
        ++here_;
        skip_digits();
    }
    const bool has_exponent = at(here_) == 'e' || at(here_) == 'E';
    if (has_exponent) {
        real = true;
        here_ += at(here_ + 1) == '+' || at(here_ + 1) == '-' ? 2U : 1U;
        if (!is_digit(at(here_))) {
            return error_at(here_, "the exponent of a number needs digits");
        }
        skip_digits();
    }
    if (begins_name(at(here_)) || at(here_) == '.') {
        return error_at(here_, "a number ends here; an operator such as '*' is missing");
    }
    const std::string_view digits = text_.substr(start, here_ - start);
    Token token{TokenKind::Literal, start, std::string(digits), {}};
    const char* const end = digits.data() + digits.size();
    if (real) {
        double value = 0;
        const auto [stop, failure] = std::from_chars(digits.data(), end, value);
        if (failure != std::errc{} || stop != end) {
            return error_at(start, fmt::format("{} does not fit a real number", digits));
        }
        token.value = value;
    } else {
        std::int64_t value = 0;
        const auto [stop, failure] = std::from_chars(digits.data(), end, value);
        if (failure != std::errc{} || stop != end) {
            return error_at(
                start, fmt::format("{} does not fit 64 bits; {}.0 is a real number", digits, digits)
            );
        }
        token.value = value;
    }
    return token;
}

Result<Token> FormulaLexer::quoted_text() {
    const std::size_t start = here_;
    const char quote = text_[here_++];
    std::string content;
    while (here_ < text_.size() && text_[here_] != quote) {
        if (text_[here_] != '\\') {
            content += text_[here_++];
            continue;
        }
        const char letter = unescaped(at(here_ + 1));
        if (letter == '\0') {
            return error_at(here_, R"(after a backslash: n, t, \, ' or ")");
        }
        content += letter;
        here_ += 2;
    }
    if (here_ == text_.size()) {
        return error_at(start, fmt::format("the text that begins here has no closing {}", quote));
    }
    ++here_;
    return Token{
        TokenKind::Literal, start, std::string(text_.substr(start, here_ - start)), content};
}

Result<Token> FormulaLexer::quoted_key() {
    const std::size_t start = here_;
    const std::size_t end = text_.find('`', start + 1);
    if (end == std::string_view::npos) {
        return error_at(start, "the key that begins here has no closing `");
    }
    here_ = end + 1;
    return Token{
        TokenKind::QuotedKey, start, std::string(text_.substr(start + 1, end - start - 1)), {}};
}

Token FormulaLexer::name() {
    const std::size_t start = here_;
    const auto skip_letters = [&] {
        while (begins_name(at(here_)) || is_digit(at(here_))) {
            ++here_;
        }
    };
    skip_letters();
    while (at(here_) == '.' && begins_name(at(here_ + 1))) {
        ++here_;
        skip_letters();
    }
    return {TokenKind::Name, start, std::string(text_.substr(start, here_ - start)), {}};
}

Result<Token> FormulaLexer::sign() {
    const std::size_t start = here_;
    const std::string_view rest = text_.substr(start);
    for (const std::string_view sign : kSigns) {
        if (rest.substr(0, sign.size()) == sign) {
            here_ += sign.size();
            return Token{TokenKind::Sign, start, std::string(sign), {}};
        }
    }
    for (const auto& [sign, hint] : kHints) {
        if (rest.substr(0, sign.size()) == sign) {
            return error_at(start, fmt::format("'{}' is not known; {}", sign, hint));
        }
    }
    return error_at(
        start,
        "expected a number, a text in quotes, a key (in backticks if it is no plain name) or an "
        "operator"
    );
}

}  // namespace muster
