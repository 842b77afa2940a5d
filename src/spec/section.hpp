// SPDX-License-Identifier: Apache-2.0
//
// section - typed reading of a map with known keys. Whatever is wrong goes to the problems with its
// place and key; the reader goes on with the default, so that everything wrong is told at once.

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "spec/document.hpp"
#include "spec/problems.hpp"

namespace muster {

/// A word of the spec and what it stands for.
template <class T>
struct Named {
    std::string_view name;
    T value;
};

struct WholeRange {
    std::int64_t least = std::numeric_limits<std::int64_t>::min();
    /// How the allowed numbers are called: "at least 1, or -1 for endless".
    std::string_view meaning = "a whole number";
};

class Section {
  public:
    /// Reads `node` as the section `known` of known_keys(), found at `path` ("resources[1]").
    /// A null node is an empty section. Unknown keys, keys of later versions and a node that is no
    /// map are problems at once.
    Section(const YamlNode* node, std::string path, std::string_view known, Problems& problems);

    /// The key's value, or nullptr when it is absent or null: the default is meant.
    const YamlNode* get(std::string_view key) const;

    /// Scalars as they were written.
    std::optional<std::string> text(std::string_view key) const;
    std::optional<bool> truth(std::string_view key) const;
    std::optional<std::int64_t> whole(std::string_view key, WholeRange range) const;
    std::optional<Duration> duration(std::string_view key, bool zero_allowed) const;
    /// One text or a list of them.
    std::vector<std::string> texts(std::string_view key) const;
    template <class T>
    std::optional<T> one_of(std::string_view key, const std::vector<Named<T>>& names) const;

    std::string path_of(std::string_view key) const;
    Problems& problems() const { return *problems_; }
    /// Where the section is, for what it lacks.
    Place place() const { return place_; }
    void problem(const YamlNode& node, std::string_view key, std::string_view message) const;

  private:
    void check_keys(std::string_view known) const;
    /// The index of the key's text among `names`.
    std::optional<std::size_t>
    index_of_word(std::string_view key, const std::vector<std::string>& names) const;

    const YamlNode* node_;
    std::string path_;
    Problems* problems_;
    Place place_;
};

template <class T>
std::optional<T> Section::one_of(std::string_view key, const std::vector<Named<T>>& names) const {
    std::vector<std::string> words;
    words.reserve(names.size());
    for (const Named<T>& name : names) {
        words.emplace_back(name.name);
    }
    const std::optional<std::size_t> index = index_of_word(key, words);
    return index ? std::optional<T>(names[*index].value) : std::nullopt;
}

/// "expected a map, found the number 3".
std::string expected(std::string_view what, const YamlNode& found);

/// A scalar as it was written; anything else is a problem.
std::optional<std::string>
read_text(const YamlNode& node, std::string_view path, Problems& problems);

/// "a, b and c".
std::string listed(const std::vector<std::string>& words, std::string_view last = "and");

/// "unknown key 'x'; did you mean 'y'?", or with all that are known when none is near.
std::string unknown_key(std::string_view key, const std::vector<std::string>& known);

}  // namespace muster
