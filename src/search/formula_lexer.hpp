// SPDX-License-Identifier: Apache-2.0
//
// formula_lexer - cuts the text of a formula into numbers, texts, names and signs.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/error.hpp"
#include "muster/value.hpp"

namespace muster {

enum class TokenKind {
    /// A number or a text; `value` holds it.
    Literal,
    /// A key, function or word such as `and`; dots are kept.
    Name,
    /// A key in backticks, without them.
    QuotedKey,
    /// "+", "**", "(" and so on.
    Sign,
    End,
};

struct Token {
    TokenKind kind = TokenKind::End;
    /// Its place in the formula, from 0.
    std::size_t position = 0;
    std::string text;
    Value value;
};

/// Reads one token at a time.
class FormulaLexer {
  public:
    explicit FormulaLexer(std::string_view text) : text_(text) {}

    /// The next token; End for ever at the end.
    /// Errors: InvalidInput, with the formula and the position.
    Result<Token> next();

    /// "'a + ': at 5: what", positions counted from 1.
    Error error_at(std::size_t position, std::string_view what) const;

  private:
    Result<Token> number();
    Result<Token> quoted_text();
    Result<Token> quoted_key();
    Result<Token> sign();
    Token name();
    char at(std::size_t index) const { return index < text_.size() ? text_[index] : '\0'; }

    std::string_view text_;
    std::size_t here_ = 0;
};

}  // namespace muster
