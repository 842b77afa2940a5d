// SPDX-License-Identifier: Apache-2.0
//
// document - YAML or JSON text as a tree that knows where each value was written. The only file
// that includes yaml-cpp is document.cpp.
//
// Plain scalars have the types of YAML 1.2's core schema: `1e-4` is real, `0x10` whole, `yes`, `on`
// and `nan` are text, and so is everything in quotes.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"
#include "muster/value.hpp"

#include "spec/problems.hpp"

namespace muster {

struct Entry;

/// One value of a document.
struct YamlNode {
    enum class Kind { Null, Scalar, List, Map };

    Kind kind = Kind::Null;
    Place place;
    /// A scalar as written, without its quotes.
    std::string text;
    /// A scalar in quotes, in block style or tagged !!str: always text.
    bool quoted = false;
    std::vector<YamlNode> items;
    std::vector<Entry> entries;

    bool is_null() const { return kind == Kind::Null; }
    bool is_scalar() const { return kind == Kind::Scalar; }
    bool is_list() const { return kind == Kind::List; }
    bool is_map() const { return kind == Kind::Map; }

    /// The value of `key` in a map, or nullptr.
    const YamlNode* find(std::string_view key) const;
    YamlNode* find(std::string_view key);
};

/// A member of a map. Keys differ from each other.
struct Entry {
    std::string key;
    Place place;
    YamlNode value;
};

/// Reads one document; an empty text is a null. Duplicate keys, keys that are no text and tags
/// without meaning are added to `problems`; `set` numbers the --set that the text is of.
/// Errors: nothing is returned when the text is not YAML, not UTF-8, nested more than 100 deep, or
/// more than 8 MiB or 200,000 values (each use of an alias counted) large; `problems` says which.
bool read_document(
    std::string_view text,
    YamlNode& root,
    Problems& problems,
    std::uint32_t set = 0
);

/// The value with its type.
Value to_value(const YamlNode& node);

/// "text 'abc'", "the number 3", "a list": what was found, for messages.
std::string describe(const YamlNode& node);

}  // namespace muster
