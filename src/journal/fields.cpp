// SPDX-License-Identifier: Apache-2.0
//
// fields - finds where values begin and end. What a value is, if it is more than a number or a
// plain text, is left to the JSON library.

#include "journal/fields.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "journal/names.hpp"

namespace muster::journal {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Goes through a JSON text from the left. Deep nesting takes no stack.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    void skip_blanks() {
        while (at_ < text_.size() && is_blank(text_[at_])) {
            ++at_;
        }
    }
    bool take(char wanted) {
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != wanted) {
            return false;
        }
        ++at_;
        return true;
    }
    void require(char wanted) {
        if (!take(wanted)) {
            throw BadRecord(fmt::format("'{}' is missing", wanted));
        }
    }
    void require_end() {
        skip_blanks();
        if (at_ != text_.size()) {
            throw BadRecord("something follows the end of the record");
        }
    }
    /// What is between two quotes, as written.
    std::string_view text() {
        require('"');
        const std::size_t start = at_;
        skip_text();
        return text_.substr(start, at_ - start - 1);
    }
    std::string_view value() {
        skip_blanks();
        const std::size_t start = at_;
        std::size_t depth = 0;
        do {
            depth = skip_piece(depth);
        } while (depth > 0);
        if (at_ == start) {
            throw BadRecord("a value is missing");
        }
        std::string_view value = text_.substr(start, at_ - start);
        while (is_blank(value.back())) {
            value.remove_suffix(1);
        }
        return value;
    }

  private:
    /// Behind the closing quote.
    void skip_text() {
        while (true) {
            at_ = text_.find_first_of("\"\\", at_);
            if (at_ == std::string_view::npos || (text_[at_] == '\\' && at_ + 1 == text_.size())) {
                throw BadRecord("a text has no end");
            }
            if (text_[at_] == '"') {
                ++at_;
                return;
            }
            at_ += 2;
        }
    }
    /// Skips a bracket, a text, or what lies between such; returns how deep it is then.
    std::size_t skip_piece(std::size_t depth) {
        if (at_ >= text_.size()) {
            throw BadRecord("it ends within a value");
        }
        switch (text_[at_]) {
            case '{':
            case '[':
                ++at_;
                return depth + 1;
            case '}':
            case ']':
                if (depth == 0) {
                    throw BadRecord("a value is missing");
                }
                ++at_;
                return depth - 1;
            case '"':
                ++at_;
                skip_text();
                return depth;
            case ',':
            case ':':
                if (depth == 0) {
                    throw BadRecord("a value is missing");
                }
                ++at_;
                return depth;
            default:
                at_ = std::min(text_.find_first_of("{}[]\",:", at_), text_.size());
                return depth;
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

Value parsed(std::string_view json) {
    Result<Value> value = value_from_json(json);
    if (!value.ok()) {
        throw BadRecord(value.error().message);
    }
    return std::move(value).value();
}

/// Turns the texts of non-finite numbers into these, and takes the apostrophe off others.
void restore_texts(Value& value) {
    if (const std::string* text = value.as_text()) {
        if (const std::optional<double> real = non_finite(*text)) {
            value = Value(*real);
        } else if (looks_non_finite(*text)) {
            value = Value(text->substr(1));
        }
    } else if (const Value::List* list = value.as_list()) {
        Value::List copy = *list;
        std::for_each(copy.begin(), copy.end(), restore_texts);
        value = Value(std::move(copy));
    } else if (const Value::Map* map = value.as_map()) {
        Value::Map copy = *map;
        for (ValueMember& member : copy) {
            restore_texts(member.value);
        }
        value = Value(std::move(copy));
    }
}

/// A text without escapes needs no parser.
bool is_plain_text(std::string_view json) {
    return json.size() >= 2 && json.front() == '"' && json.back() == '"' &&
           json.find('\\') == std::string_view::npos;
}

std::string text_of(std::string_view json, std::string_view key) {
    if (is_plain_text(json)) {
        return std::string(json.substr(1, json.size() - 2));
    }
    const Value value = json.empty() || json.front() != '"' ? Value() : parsed(json);
    if (value.as_text() == nullptr) {
        throw BadRecord(fmt::format("\"{}\" is not a text", key));
    }
    return *value.as_text();
}

std::optional<Value> number_of(std::string_view json) {
    const char* end = json.data() + json.size();
    std::int64_t whole = 0;
    const auto [whole_stop, whole_error] = std::from_chars(json.data(), end, whole);
    // "-0" is the whole number 0; a real is written with a point or an exponent.
    if (whole_error == std::errc{} && whole_stop == end) {
        return Value(whole);
    }
    double real = 0;
    const auto [stop, error] = std::from_chars(json.data(), end, real);
    if (error == std::errc{} && stop == end) {
        return Value(real);
    }
    return std::nullopt;
}

}  // namespace

Value value_of(std::string_view json) {
    const char first = json.empty() ? '\0' : json.front();
    if (first == '-' || (first >= '0' && first <= '9')) {
        if (std::optional<Value> number = number_of(json)) {
            return std::move(*number);
        }
    } else if (json == "true" || json == "false") {
        return first == 't';
    } else if (is_plain_text(json)) {
        const std::string_view text = json.substr(1, json.size() - 2);
        if (!looks_non_finite(text)) {
            return std::string(text);
        }
    }
    Value value = parsed(json);
    restore_texts(value);
    return value;
}

Fields::Fields(std::string_view json) {
    Scanner scanner(json);
    if (!scanner.take('{')) {
        throw BadRecord("something is not an object");
    }
    constexpr std::size_t kUsual = 16;
    members_.reserve(kUsual);
    if (!scanner.take('}')) {
        do {
            scanner.skip_blanks();
            const std::string_view key = scanner.text();
            scanner.require(':');
            members_.push_back({key, scanner.value()});
        } while (scanner.take(','));
        scanner.require('}');
    }
    scanner.require_end();
}

std::string_view Fields::find(std::string_view key) const {
    const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
        return member.key == key;
    });
    return found == members_.end() ? std::string_view() : found->value;
}

std::string_view Fields::get(std::string_view key) const {
    const std::string_view value = find(key);
    if (value.empty()) {
        throw BadRecord(fmt::format("the key \"{}\" is missing", key));
    }
    return value;
}

std::string Fields::text(std::string_view key) const {
    return text_of(get(key), key);
}

std::string Fields::text_or_empty(std::string_view key) const {
    return find(key).empty() ? std::string() : text(key);
}

std::vector<std::string_view> Fields::list(std::string_view key) const {
    const std::string_view value = find(key);
    return value.empty() ? std::vector<std::string_view>() : items_of(value, key);
}

std::vector<ValueMember> Fields::members() const {
    std::vector<ValueMember> members;
    members.reserve(members_.size());
    for (const Member& member : members_) {
        const bool is_plain = member.key.find('\\') == std::string_view::npos;
        members.push_back(
            {is_plain ? std::string(member.key)
                      : *parsed("\"" + std::string(member.key) + "\"").as_text(),
             value_of(member.value)}
        );
    }
    return members;
}

void Fields::refuse_number(std::string_view key) {
    throw BadRecord(fmt::format("\"{}\" is not a whole number in range", key));
}

std::vector<std::string_view> items_of(std::string_view list, std::string_view key) {
    Scanner scanner(list);
    if (!scanner.take('[')) {
        throw BadRecord(fmt::format("\"{}\" is not a list", key));
    }
    std::vector<std::string_view> items;
    if (!scanner.take(']')) {
        do {
            items.push_back(scanner.value());
        } while (scanner.take(','));
        scanner.require(']');
    }
    scanner.require_end();
    return items;
}

}  // namespace muster::journal
