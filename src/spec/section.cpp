// SPDX-License-Identifier: Apache-2.0

#include "spec/section.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "spec/keys.hpp"
#include "spec/scalar.hpp"

namespace muster {

std::string expected(std::string_view what, const YamlNode& found) {
    return fmt::format("expected {}, found {}", what, describe(found));
}

std::string listed(const std::vector<std::string>& words, std::string_view last) {
    std::string text;
    for (std::size_t index = 0; index < words.size(); ++index) {
        if (index > 0) {
            text += index + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
        }
        text += words[index];
    }
    return text;
}

std::string unknown_key(std::string_view key, const std::vector<std::string>& known) {
    constexpr std::size_t kLongest = 60;
    const std::string shown =
        key.size() > kLongest ? std::string(key.substr(0, kLongest)) + "…" : std::string(key);
    const std::string meant = did_you_mean(key, known);
    return fmt::format(
        "unknown key '{}'{}",
        shown,
        !meant.empty()  ? meant
        : known.empty() ? std::string()
                        : "; known here are " + listed(known)
    );
}

std::optional<std::string>
read_text(const YamlNode& node, std::string_view path, Problems& problems) {
    if (node.is_scalar()) {
        return node.text;
    }
    problems.add(node.place, path, expected("text", node));
    return std::nullopt;
}

Section::Section(const YamlNode* node, std::string path, std::string_view known, Problems& problems)
    : node_(node),
      path_(std::move(path)),
      problems_(&problems) {
    if (node_ == nullptr) {
        return;
    }
    place_ = node_->place;
    if (node_->is_null()) {
        node_ = nullptr;
        return;
    }
    if (!node_->is_map()) {
        problems.add(place_, path_, expected("a map", *node_));
        node_ = nullptr;
        return;
    }
    check_keys(known);
}

void Section::check_keys(std::string_view known) const {
    const std::vector<std::string> names = keys_below(known);
    const std::string prefix = known.empty() ? "" : std::string(known) + ".";
    // All names are only listed when none is near; those of later versions are then no help.
    std::vector<std::string> now;
    std::copy_if(names.begin(), names.end(), std::back_inserter(now), [&](const auto& name) {
        return !is_later_key(prefix + name);
    });
    for (const Entry& entry : node_->entries) {
        if (is_later_key(prefix + entry.key)) {
            problems_->add_later(entry.place, path_of(entry.key), "this key");
        } else if (std::find(now.begin(), now.end(), entry.key) == now.end()) {
            const bool near = !nearest(entry.key, names).empty();
            const std::string message = unknown_key(entry.key, near ? names : now);
            problems_->add(entry.place, path_of(entry.key), message);
        }
    }
}

const YamlNode* Section::get(std::string_view key) const {
    const YamlNode* value = node_ == nullptr ? nullptr : node_->find(key);
    return value == nullptr || value->is_null() ||
                   (value->is_scalar() && to_value(*value).is_null())
               ? nullptr
               : value;
}

std::string Section::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Section::problem(const YamlNode& node, std::string_view key, std::string_view message) const {
    problems_->add(node.place, path_of(key), message);
}

std::optional<std::string> Section::text(std::string_view key) const {
    const YamlNode* value = get(key);
    return value == nullptr ? std::nullopt : read_text(*value, path_of(key), *problems_);
}

std::optional<bool> Section::truth(std::string_view key) const {
    const YamlNode* value = get(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const Value found = to_value(*value);
    if (const bool* truth = found.as_bool()) {
        return *truth;
    }
    problem(*value, key, expected("true or false", *value));
    return std::nullopt;
}

std::optional<std::int64_t> Section::whole(std::string_view key, WholeRange range) const {
    const YamlNode* value = get(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const Value found = to_value(*value);
    const std::int64_t* number = found.as_int();
    if (number != nullptr && *number >= range.least) {
        return *number;
    }
    problem(*value, key, expected(range.meaning, *value));
    return std::nullopt;
}

std::optional<Duration> Section::duration(std::string_view key, bool zero_allowed) const {
    const YamlNode* value = get(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_scalar()) {
        problem(*value, key, expected("a duration such as 30m", *value));
        return std::nullopt;
    }
    const Result<Duration> duration = parse_duration(value->text);
    if (!duration) {
        problem(*value, key, duration.error().message);
        return std::nullopt;
    }
    if (*duration == Duration(0) && !zero_allowed) {
        problem(*value, key, value->text + " is no time at all; leave the key out for no limit");
        return std::nullopt;
    }
    return *duration;
}

std::vector<std::string> Section::texts(std::string_view key) const {
    const YamlNode* value = get(key);
    std::vector<std::string> found;
    if (value == nullptr) {
        return found;
    }
    if (value->is_scalar()) {
        return {value->text};
    }
    if (!value->is_list()) {
        problem(*value, key, expected("a list of texts", *value));
        return found;
    }
    for (std::size_t index = 0; index < value->items.size(); ++index) {
        const std::string path = fmt::format("{}[{}]", path_of(key), index);
        if (std::optional<std::string> item = read_text(value->items[index], path, *problems_)) {
            found.push_back(std::move(*item));
        }
    }
    return found;
}

std::optional<std::size_t>
Section::index_of_word(std::string_view key, const std::vector<std::string>& names) const {
    const YamlNode* value = get(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const auto found = std::find(names.begin(), names.end(), value->text);
    if (value->is_scalar() && found != names.end()) {
        return static_cast<std::size_t>(found - names.begin());
    }
    problem(*value, key, expected(listed(names, "or"), *value));
    return std::nullopt;
}

}  // namespace muster
