// SPDX-License-Identifier: Apache-2.0

#include "report/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace muster {
namespace {

void append_utf8(unsigned code, std::string& out) {
    const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | (code >> 6U));
        put(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        put(0xE0U | (code >> 12U));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    } else {
        put(0xF0U | (code >> 18U));
        put(0x80U | ((code >> 12U) & 0x3FU));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    }
}

bool is_number_character(char character) {
    return (character >= '0' && character <= '9') || character == '-' || character == '+' ||
           character == '.' || character == 'e' || character == 'E';
}

}  // namespace

bool has_twins(const std::vector<ValueMember>& members) {
    // Few names are compared in place, many by sorting.
    constexpr std::size_t kFew = 12;
    if (members.size() <= kFew) {
        for (auto member = members.begin(); member != members.end(); ++member) {
            const auto same = [&](const ValueMember& other) { return other.key == member->key; };
            if (std::any_of(members.begin(), member, same)) {
                return true;
            }
        }
        return false;
    }
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const ValueMember& member : members) {
        names.push_back(member.key);
    }
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) != names.end();
}

std::string JsonReader::problem() const {
    return fmt::format("{} at byte {}", problem_ == nullptr ? "nothing wrong" : problem_, at_);
}

bool JsonReader::fail(const char* problem) {
    problem_ = problem_ == nullptr ? problem : problem_;
    return false;
}

void JsonReader::skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
        ++at_;
    }
}

bool JsonReader::take(char wanted) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == wanted) {
        ++at_;
        return true;
    }
    return false;
}

bool JsonReader::take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) {
        return false;
    }
    at_ += word.size();
    return true;
}

bool JsonReader::end() {
    skip_blanks();
    return at_ == text_.size() || fail("expected nothing more");
}

bool JsonReader::begin_nested() {
    return ++depth_ <= kMaxDepth || fail("more than 32 levels");
}

bool JsonReader::begin_object() {
    return take('{') ? begin_nested() : fail("expected '{'");
}

bool JsonReader::next_name(std::string& out, bool& first) {
    if (take('}')) {
        --depth_;
        return false;
    }
    if (!std::exchange(first, false) && !take(',')) {
        return fail("expected ',' or '}'");
    }
    return read_text(out) && (take(':') || fail("expected ':'"));
}

bool JsonReader::read_members(std::vector<ValueMember>& out) {
    if (!begin_object()) {
        return false;
    }
    out.reserve(4);
    bool first = true;
    std::string name;
    while (next_name(name, first)) {
        out.push_back({std::move(name), {}});
        name.clear();
        if (!read_value(out.back().value)) {
            return false;
        }
    }
    return !failed() && (!has_twins(out) || fail("a name stands twice in the object that ends"));
}

bool JsonReader::read_list(Value& out) {
    Value::List list;
    ++at_;
    if (!begin_nested()) {
        return false;
    }
    bool first = true;
    while (!take(']')) {
        if (!std::exchange(first, false) && !take(',')) {
            return fail("expected ',' or ']'");
        }
        list.emplace_back();
        if (!read_value(list.back())) {
            return false;
        }
    }
    --depth_;
    out = std::move(list);
    return true;
}

bool JsonReader::read_value(Value& out) {
    skip_blanks();
    if (at_ == text_.size()) {
        return fail("expected a value");
    }
    switch (text_[at_]) {
        case '"': {
            std::string text;
            if (!read_text(text)) {
                return false;
            }
            const std::optional<double> number = non_finite(text);
            out = number ? Value(*number) : Value(std::move(text));
            return true;
        }
        case '{': {
            Value::Map map;
            if (!read_members(map)) {
                return false;
            }
            out = std::move(map);
            return true;
        }
        case '[':
            return read_list(out);
        default:
            return read_number(out);
    }
}

bool JsonReader::read_number(Value& out) {
    std::size_t stop = at_;
    while (stop < text_.size() && is_number_character(text_[stop])) {
        ++stop;
    }
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + stop;
    std::int64_t whole = 0;
    const std::from_chars_result as_whole = std::from_chars(begin, end, whole);
    if (as_whole.ec == std::errc() && as_whole.ptr == end) {
        out = whole;
        at_ = stop;
        return true;
    }
    double real = 0;
    const std::from_chars_result as_real = std::from_chars(begin, end, real);
    if (as_real.ptr == end && as_real.ec != std::errc::invalid_argument) {
        // Out of range: strtod says on which side.
        out = as_real.ec == std::errc() ? real
                                        : std::strtod(std::string(begin, end).c_str(), nullptr);
        at_ = stop;
        return true;
    }
    if (take_word("true") || take_word("false")) {
        out = text_[at_ - 2] == 'u';
    } else if (take_word("null")) {
        out = Value();
    } else if (take_word("NaN")) {
        out = std::numeric_limits<double>::quiet_NaN();
    } else if (take_word("Infinity")) {
        out = std::numeric_limits<double>::infinity();
    } else if (take_word("-Infinity")) {
        out = -std::numeric_limits<double>::infinity();
    } else {
        return fail("expected a value");
    }
    return true;
}

bool JsonReader::read_text(std::string& out) {
    if (!take('"')) {
        return fail("expected '\"'");
    }
    while (true) {
        std::size_t stop = at_;
        while (stop < text_.size() && text_[stop] != '"' && text_[stop] != '\\') {
            ++stop;
        }
        out.append(text_, at_, stop - at_);
        at_ = stop;
        if (stop == text_.size()) {
            return fail("a text without an end");
        }
        ++at_;
        if (text_[stop] == '"') {
            return true;
        }
        if (!read_escape(out)) {
            return false;
        }
    }
}

bool JsonReader::read_hex(unsigned& code) {
    const std::string_view digits = text_.substr(at_, 4);
    const std::from_chars_result result =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || result.ec != std::errc() || result.ptr != digits.data() + 4) {
        return fail("expected four hexadecimal digits");
    }
    at_ += 4;
    return true;
}

bool JsonReader::read_escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char name = at_ < text_.size() ? text_[at_] : ' ';
    ++at_;
    if (const std::size_t index = kNames.find(name); index != std::string_view::npos) {
        out += kMeanings[index];
        return true;
    }
    unsigned code = 0;
    if (name != 'u') {
        --at_;
        return fail("an unknown escape");
    }
    if (!read_hex(code)) {
        return false;
    }
    if (code >= 0xD800 && code < 0xDC00) {
        unsigned low = 0;
        if (!take_word("\\u") || !read_hex(low) || low < 0xDC00 || low > 0xDFFF) {
            return fail("half of a surrogate pair");
        }
        code = 0x10000U + ((code - 0xD800U) << 10U) + (low - 0xDC00U);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fail("half of a surrogate pair");
    }
    append_utf8(code, out);
    return true;
}

}  // namespace muster
