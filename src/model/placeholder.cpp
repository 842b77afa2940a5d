// SPDX-License-Identifier: Apache-2.0

#include "model/placeholder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.hpp"

namespace muster {
namespace {

constexpr std::string_view kOwnNames = "muster.";
// What a value is to the shell's grammar.
constexpr std::string_view kSomeWord = "x";

/// Text between two placeholders, or the name of one.
struct Piece {
    std::string_view text;
    bool is_name = false;
    /// Where it begins in the template.
    std::size_t at = 0;
};

/// Which quotes of a shell line are open where a placeholder stands.
class ShellQuotes {
  public:
    void read(std::string_view text) {
        for (const char letter : text) {
            read(letter);
        }
    }

    /// A quote character, or 0 outside of quotes.
    char open() const { return open_; }

  private:
    void read(char letter) {
        if (in_comment_) {
            in_comment_ = letter != '\n';
        } else if (escaped_) {
            escaped_ = false;
        } else if (letter == '\\' && open_ != '\'') {
            escaped_ = true;
        } else if (open_ != 0) {
            open_ = letter == open_ ? '\0' : open_;
        } else if (letter == '\'' || letter == '"') {
            open_ = letter;
        } else {
            in_comment_ = letter == '#' && at_word_start_;
        }
        constexpr std::string_view kEndsWord = " \t\n;&|(";
        at_word_start_ = kEndsWord.find(letter) != std::string_view::npos;
    }

    char open_ = '\0';
    bool escaped_ = false;
    bool in_comment_ = false;
    bool at_word_start_ = true;
};

Error lone_brace(char brace, std::size_t at) {
    return {
        ErrorCode::InvalidInput,
        fmt::format(
            "'{0}' at character {1} belongs to no placeholder; write {0}{0} for the brace itself",
            brace,
            at + 1
        )};
}

/// Splits a template. `{{` ends a text piece after its first brace, so that no text is copied.
Result<std::vector<Piece>> split(std::string_view text) {
    std::vector<Piece> pieces;
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '{' && text[at] != '}') {
            continue;
        }
        if (at + 1 < text.size() && text[at + 1] == text[at]) {
            pieces.push_back({text.substr(start, at + 1 - start), false, start});
            start = at + 2;
            ++at;
            continue;
        }
        const std::size_t end = text.find_first_of("{}\n", at + 1);
        if (text[at] == '}' || end == std::string_view::npos || text[end] != '}' || end == at + 1) {
            return lone_brace(text[at], at);
        }
        pieces.push_back({text.substr(start, at - start), false, start});
        pieces.push_back({text.substr(at + 1, end - at - 1), true, at});
        start = end + 1;
        at = end;
    }
    pieces.push_back({text.substr(start), false, start});
    return pieces;
}

/// Whether somebody who wrote `{name}` may have meant a key at all: {"a": 1} is JSON.
bool looks_like_a_key(std::string_view name) {
    return name.find_first_of("\"':, \t") == std::string_view::npos;
}

bool is_own_name(std::string_view name) {
    return name.substr(0, kOwnNames.size()) == kOwnNames;
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Error unknown_name(const Piece& piece, const std::vector<std::string>& keys) {
    if (!looks_like_a_key(piece.text)) {
        return lone_brace('{', piece.at);
    }
    std::vector<std::string> known = keys;
    const std::vector<std::string>& own = muster_placeholders();
    known.insert(known.end(), own.begin(), own.end());
    const std::string meant = nearest(piece.text, known);
    return {
        ErrorCode::InvalidInput,
        fmt::format(
            "{{{0}}} at character {1} names no key of the space{2}; write {{{{{0}}}}} for the text "
            "itself",
            piece.text,
            piece.at + 1,
            meant.empty() ? "" : " (did you mean {" + meant + "}?)"
        )};
}

Error inside_quotes(const Piece& piece, char quote) {
    return {
        ErrorCode::InvalidInput,
        fmt::format(
            "{{{}}} at character {} is inside {} quotes; its value brings its own quotes, so end "
            "them before it",
            piece.text,
            piece.at + 1,
            quote == '"' ? "double" : "single"
        )};
}

std::string value_of(std::string_view name, const PlaceholderValues& values) {
    const std::array<const std::string*, 5> own{
        &values.trial_id, &values.trial_dir, &values.checkpoint, &values.cores, &values.gpus};
    const std::vector<std::string>& names = muster_placeholders();
    for (std::size_t index = 0; index < own.size(); ++index) {
        if (name == names[index]) {
            return *own[index];
        }
    }
    const Value* value = values.config == nullptr ? nullptr : values.config->find(name);
    return value == nullptr ? std::string() : to_argument(*value);
}

}  // namespace

const std::vector<std::string>& muster_placeholders() {
    static const std::vector<std::string> names_of_muster{
        "muster.trial_id", "muster.trial_dir", "muster.checkpoint", "muster.cores", "muster.gpus"};
    return names_of_muster;
}

Status
check_placeholders(std::string_view text, const std::vector<std::string>& keys, Quoting quoting) {
    const Result<std::vector<Piece>> pieces = split(text);
    if (!pieces) {
        return pieces.error();
    }
    ShellQuotes quotes;
    for (const Piece& piece : *pieces) {
        if (!piece.is_name) {
            quotes.read(piece.text);
        } else if (!contains(keys, piece.text) && !contains(muster_placeholders(), piece.text)) {
            return unknown_name(piece, keys);
        } else if (quoting == Quoting::Shell && quotes.open() != '\0') {
            return inside_quotes(piece, quotes.open());
        } else {
            quotes.read(kSomeWord);
        }
    }
    return Ok{};
}

Result<std::string>
expand(std::string_view text, const PlaceholderValues& values, Quoting quoting) {
    const Result<std::vector<Piece>> pieces = split(text);
    if (!pieces) {
        return pieces.error();
    }
    std::string filled;
    ShellQuotes quotes;
    for (const Piece& piece : *pieces) {
        if (!piece.is_name) {
            quotes.read(piece.text);
            filled += piece.text;
            continue;
        }
        if (quoting == Quoting::Shell && quotes.open() != '\0') {
            return inside_quotes(piece, quotes.open());
        }
        const bool is_key = values.config != nullptr && values.config->find(piece.text) != nullptr;
        const bool is_foreign = is_own_name(piece.text)
                                    ? !contains(muster_placeholders(), piece.text)
                                    : !looks_like_a_key(piece.text);
        if (!is_key && is_foreign) {
            return unknown_name(piece, {});
        }
        const std::string value = value_of(piece.text, values);
        filled += quoting == Quoting::Shell ? shell_quoted(value) : value;
        quotes.read(kSomeWord);
    }
    return filled;
}

bool mentions(std::string_view text, std::string_view name) {
    const Result<std::vector<Piece>> pieces = split(text);
    return pieces.ok() && std::any_of(pieces->begin(), pieces->end(), [&](const Piece& piece) {
               return piece.is_name && piece.text == name;
           });
}

std::string shell_quoted(std::string_view text) {
    constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(text);
    }
    std::string quoted = "'";
    for (const char letter : text) {
        if (letter == '\'') {
            quoted += "'\\''";
        } else {
            quoted += letter;
        }
    }
    return quoted + "'";
}

}  // namespace muster
