// SPDX-License-Identifier: Apache-2.0
//
// fields - the JSON of a record, read where it lies: a million trials are restored this way, so no
// tree is built of what is only looked at. Private to this folder.

#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "muster/value.hpp"

namespace muster::journal {

/// What is wrong with a record. Thrown and caught within RecordReader.
class BadRecord : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// One JSON object as slices of its text, which must outlive it. Every function throws BadRecord
/// for what is not there or not as asked for.
class Fields {
  public:
    explicit Fields(std::string_view json);

    /// The text of the value, empty when there is none.
    std::string_view find(std::string_view key) const;
    std::string_view get(std::string_view key) const;

    template <class Number>
    Number whole(std::string_view key) const {
        return whole_of<Number>(get(key), key);
    }
    /// An absent number is 0.
    template <class Number>
    Number whole_or_zero(std::string_view key) const {
        const std::string_view value = find(key);
        return value.empty() ? Number{0} : whole_of<Number>(value, key);
    }
    std::string text(std::string_view key) const;
    std::string text_or_empty(std::string_view key) const;
    /// Absent is false.
    bool truth(std::string_view key) const { return find(key) == "true"; }
    /// The texts of a list's items; none when it is absent.
    std::vector<std::string_view> list(std::string_view key) const;

    /// Every member with its value; texts that stand for numbers that are not finite are such.
    std::vector<ValueMember> members() const;

    template <class Number>
    static Number whole_of(std::string_view value, std::string_view key) {
        Number number{};
        const auto [stop, error] =
            std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || stop != value.data() + value.size()) {
            refuse_number(key);
        }
        return number;
    }

  private:
    struct Member {
        /// As written, without the quotes.
        std::string_view key;
        std::string_view value;
    };

    [[noreturn]] static void refuse_number(std::string_view key);

    std::vector<Member> members_;
};

/// The items of a JSON list as slices of its text.
std::vector<std::string_view> items_of(std::string_view list, std::string_view key);

/// A value as the journal writes it: the texts of non-finite numbers are these numbers.
Value value_of(std::string_view json);

}  // namespace muster::journal
