// SPDX-License-Identifier: Apache-2.0
//
// value - one value of a configuration or of a report: null, truth, number, text, list or map.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/error.hpp"

namespace muster {

struct ValueMember;

/// A value that keeps its type from the spec file to the trial: 1 stays whole, 1.0 stays real.
class Value {
  public:
    using List = std::vector<Value>;
    /// Members in the order in which they were written; keys differ from each other.
    using Map = std::vector<ValueMember>;

    /// Null.
    Value();
    // Implicit, so that literals read naturally in configs: {"lr", 0.1}.
    Value(bool truth);           // NOLINT
    Value(int number);           // NOLINT
    Value(std::int64_t number);  // NOLINT
    Value(double number);        // NOLINT
    Value(const char* text);     // NOLINT
    Value(std::string text);     // NOLINT
    Value(List list);            // NOLINT
    Value(Map map);              // NOLINT

    bool is_null() const { return std::holds_alternative<std::monostate>(state_); }

    /// The content when it has this type, else nullptr.
    const bool* as_bool() const { return std::get_if<bool>(&state_); }
    const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&state_); }
    const double* as_real() const { return std::get_if<double>(&state_); }
    const std::string* as_text() const { return std::get_if<std::string>(&state_); }
    const List* as_list() const;
    const Map* as_map() const;

    /// A whole or real number, or a truth as 0 or 1; nothing for the rest.
    std::optional<double> number() const;

    /// Same type and same content. A NaN equals itself here, so that values can be compared whole.
    friend bool operator==(const Value& left, const Value& right);

  private:
    std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> state_;
};

/// A key of a map with its value.
struct ValueMember {
    std::string key;
    Value value;

    friend bool operator==(const ValueMember&, const ValueMember&) = default;
};

// Here, since clang wants ValueMember whole before it makes a variant with a Map.
inline Value::Value() = default;
inline Value::Value(bool truth) : state_(truth) {}
inline Value::Value(int number) : state_(std::int64_t{number}) {}
inline Value::Value(std::int64_t number) : state_(number) {}
inline Value::Value(double number) : state_(number) {}
inline Value::Value(const char* text) : state_(std::in_place_type<std::string>, text) {}
inline Value::Value(std::string text) : state_(std::in_place_type<std::string>, std::move(text)) {}

/// How a value reaches a command line: text as it is, everything else as in to_json().
std::string to_argument(const Value& value);

/// JSON on one line. Reals are printed shortest round-trip and always look real ("1e-05", "1.0");
/// non-finite ones are the strings "nan", "inf" and "-inf".
std::string to_json(const Value& value);

/// Appends to_json(value) to `out`.
void append_json(const Value& value, std::string& out);

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD.
void append_json(std::string_view text, std::string& out);

/// Reads one JSON document; key order is kept, a number with a point or exponent is real.
/// Errors: Corrupt, with the position.
Result<Value> value_from_json(std::string_view json);

/// The number that a JSON string stands for when it is "nan", "inf" or "-inf".
std::optional<double> non_finite(std::string_view text);

}  // namespace muster
