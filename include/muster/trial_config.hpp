// SPDX-License-Identifier: Apache-2.0
//
// trial_config - the values that muster chose for this trial, for programs that are trials.
//
// Header only, standard library only: a program needs nothing of muster but this directory.
// Included by muster/trial.hpp.

#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::trial {

/// One value of a JSON object, groups joined with '/'.
struct Field {
    enum class Kind { Null, Truth, Number, Text, List };

    std::string name;
    Kind kind = Kind::Null;
    /// A text without its quotes; everything else as it stands in the JSON.
    std::string text;
};

using Fields = std::vector<Field>;

namespace detail {

/// Reads a JSON object into fields. Never throws for bad input; depth is bounded.
class FieldReader {
  public:
    explicit FieldReader(std::string_view json) : json_(json) {}

    std::optional<Fields> read() {
        const bool good = read_object("", 0);
        skip_blanks();
        return good && at_ == json_.size() ? std::optional<Fields>(std::move(fields_))
                                           : std::nullopt;
    }

  private:
    static constexpr int kMaxDepth = 64;

    void skip_blanks() {
        constexpr std::string_view kBlanks = " \t\r\n";
        while (at_ < json_.size() && kBlanks.find(json_[at_]) != std::string_view::npos) {
            ++at_;
        }
    }

    bool take(char wanted) {
        skip_blanks();
        if (at_ == json_.size() || json_[at_] != wanted) {
            return false;
        }
        ++at_;
        return true;
    }

    bool read_object(const std::string& group, int depth) {
        if (depth > kMaxDepth || !take('{')) {
            return false;
        }
        bool first = true;
        while (!take('}')) {
            std::string name = group;
            if ((!first && !take(',')) || !read_text(name) || !take(':') ||
                !read_field(std::move(name), depth)) {
                return false;
            }
            first = false;
        }
        return true;
    }

    bool read_field(std::string name, int depth) {
        skip_blanks();
        const char next = at_ < json_.size() ? json_[at_] : ' ';
        if (next == '{') {
            return read_object(name + "/", depth + 1);
        }
        Field field{std::move(name), Field::Kind::Text, ""};
        const std::size_t begin = at_;
        bool good = true;
        if (next == '"') {
            good = read_text(field.text);
        } else if (next == '[') {
            good = skip_list(depth + 1);
            field.kind = Field::Kind::List;
        } else {
            at_ = std::min(json_.find_first_of(",]} \t\r\n", at_), json_.size());
            field.kind = next == 't' || next == 'f' ? Field::Kind::Truth
                         : next == 'n'              ? Field::Kind::Null
                                                    : Field::Kind::Number;
            good = at_ > begin;
        }
        if (field.kind != Field::Kind::Text) {
            field.text = json_.substr(begin, at_ - begin);
        }
        fields_.push_back(std::move(field));
        return good;
    }

    /// A list is kept as it stands, so only its end has to be found.
    bool skip_list(int depth) {
        int open = depth;
        while (at_ < json_.size()) {
            const char next = json_[at_];
            std::string ignored;
            if (next == '"') {
                if (!read_text(ignored)) {
                    return false;
                }
                continue;
            }
            ++at_;
            open += next == '[' || next == '{' ? 1 : 0;
            open -= next == ']' || next == '}' ? 1 : 0;
            if (open == depth) {
                return true;
            }
        }
        return false;
    }

    /// Appends a text, its escapes resolved.
    bool read_text(std::string& out) {
        if (!take('"')) {
            return false;
        }
        while (at_ < json_.size()) {
            const char next = json_[at_++];
            if (next == '"') {
                return true;
            }
            if (next != '\\') {
                out += next;
            } else if (!read_escape(out)) {
                return false;
            }
        }
        return false;
    }

    bool read_escape(std::string& out) {
        constexpr std::string_view kNames = "\"\\/bfnrt";
        constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
        const char name = at_ < json_.size() ? json_[at_++] : ' ';
        if (const std::size_t index = kNames.find(name); index != std::string_view::npos) {
            out += kMeanings[index];
            return true;
        }
        unsigned code = 0;
        if (name != 'u' || !read_hex(code)) {
            return false;
        }
        if (code >= 0xD800 && code < 0xDC00) {
            unsigned low = 0;
            if (json_.substr(at_, 2) != "\\u") {
                return false;
            }
            at_ += 2;
            if (!read_hex(low) || low < 0xDC00 || low > 0xDFFF) {
                return false;
            }
            code = 0x10000U + ((code - 0xD800U) << 10U) + (low - 0xDC00U);
        }
        append_utf8(code, out);
        return true;
    }

    bool read_hex(unsigned& code) {
        const std::string_view digits = json_.substr(at_, 4);
        const char* end = digits.data() + digits.size();
        at_ += digits.size();
        return digits.size() == 4 && std::from_chars(digits.data(), end, code, 16).ptr == end;
    }

    static void append_utf8(unsigned code, std::string& out) {
        if (code < 0x80) {
            out += static_cast<char>(code);
            return;
        }
        const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        const unsigned lead = more == 1 ? 0xC0U : more == 2 ? 0xE0U : 0xF0U;
        out += static_cast<char>(lead | (code >> (6U * static_cast<unsigned>(more))));
        for (int left = more - 1; left >= 0; --left) {
            out +=
                static_cast<char>(0x80U | ((code >> (6U * static_cast<unsigned>(left))) & 0x3FU));
        }
    }

    std::string_view json_;
    std::size_t at_ = 0;
    Fields fields_;
};

inline std::optional<double> to_real(const Field& field) {
    if (field.kind == Field::Kind::Truth) {
        return field.text == "true" ? 1.0 : 0.0;
    }
    if (field.kind == Field::Kind::Null || field.kind == Field::Kind::List) {
        return std::nullopt;
    }
    // Also "nan", "inf" and "-inf", which are texts in JSON.
    double number = 0;
    const char* end = field.text.data() + field.text.size();
    const std::from_chars_result result = std::from_chars(field.text.data(), end, number);
    const bool good = result.ec == std::errc() && result.ptr == end && !field.text.empty();
    return good ? std::optional<double>(number) : std::nullopt;
}

template <class Whole>
std::optional<Whole> to_whole(const Field& field) {
    Whole number = 0;
    const char* end = field.text.data() + field.text.size();
    if (field.kind == Field::Kind::Number &&
        std::from_chars(field.text.data(), end, number).ptr == end) {
        return number;
    }
    // 32.0 is whole as well.
    constexpr double kExact = 9007199254740992.0;
    const std::optional<double> real = to_real(field);
    if (real && std::abs(*real) <= kExact && std::trunc(*real) == *real &&
        *real >= static_cast<double>(std::numeric_limits<Whole>::min()) &&
        *real <= static_cast<double>(std::numeric_limits<Whole>::max())) {
        return static_cast<Whole>(*real);
    }
    return std::nullopt;
}

/// A value as a T, when it can be one without loss of meaning.
template <class T>
std::optional<T> convert(const Field& field) {
    if constexpr (std::is_same_v<T, std::string>) {
        return field.text;
    } else if constexpr (std::is_same_v<T, bool>) {
        return field.kind == Field::Kind::Truth ? std::optional<bool>(field.text == "true")
                                                : std::nullopt;
    } else if constexpr (std::is_integral_v<T>) {
        return to_whole<T>(field);
    } else {
        static_assert(std::is_floating_point_v<T>, "a text, a truth, or a number");
        const std::optional<double> real = to_real(field);
        return real ? std::optional<T>(static_cast<T>(*real)) : std::nullopt;
    }
}

inline std::string environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value == nullptr ? "" : value;
}

}  // namespace detail

/// The values of a JSON object, in its order; nothing when `json` is none.
inline std::optional<Fields> parse_fields(std::string_view json) {
    return detail::FieldReader(json).read();
}

/// The config of this trial: MUSTER_CONFIG, read once. Empty when not under muster.
inline const Fields& config() {
    static const Fields fields = [] {
        std::ifstream file(detail::environment("MUSTER_CONFIG"), std::ios::binary);
        const std::string json{std::istreambuf_iterator<char>(file), {}};
        return parse_fields(json).value_or(Fields{});
    }();
    return fields;
}

/// The value of `key` ("augment/flip" in groups) as a T: a truth, a number or std::string. Nothing
/// when there is no such key or its value is no T. A std::string takes any value as it is written.
template <class T>
std::optional<T> get(std::string_view key) {
    for (const Field& field : config()) {
        if (field.name == key) {
            return detail::convert<T>(field);
        }
    }
    return std::nullopt;
}

/// As get(), with what to use instead: double lr = get("lr", 0.1). The type is the fallback's.
template <class T>
T get(std::string_view key, T fallback) {
    return get<T>(key).value_or(std::move(fallback));
}
inline std::string get(std::string_view key, const char* fallback) {
    return get<std::string>(key).value_or(fallback);
}

}  // namespace muster::trial
