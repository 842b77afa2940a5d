// SPDX-License-Identifier: Apache-2.0

#include "muster/config.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"

namespace muster {
namespace {

bool same(const Value& wanted, const Value& value) {
    const bool both_numbers = wanted.as_bool() == nullptr && value.as_bool() == nullptr &&
                              wanted.number().has_value() && value.number().has_value();
    return both_numbers ? wanted.number() == value.number() : wanted == value;
}

}  // namespace

std::optional<std::size_t> ConfigSchema::index_of(std::string_view key) const {
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found == keys.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - keys.begin());
}

Config::Config(std::shared_ptr<const ConfigSchema> schema, std::vector<std::optional<Value>> values)
    : schema_(std::move(schema)),
      values_(std::make_shared<const std::vector<std::optional<Value>>>(std::move(values))) {
    check(
        schema_ != nullptr && schema_->keys.size() == values_->size(),
        "a config has one value or none for each key of its schema"
    );
}

Config Config::from_members(std::vector<ValueMember> members) {
    auto schema = std::make_shared<ConfigSchema>();
    std::vector<std::optional<Value>> values;
    for (ValueMember& member : members) {
        schema->keys.push_back(std::move(member.key));
        values.emplace_back(std::move(member.value));
    }
    return {std::move(schema), std::move(values)};
}

const Value* Config::find(std::string_view key) const {
    if (schema_ == nullptr) {
        return nullptr;
    }
    const std::optional<std::size_t> index = schema_->index_of(key);
    return index && (*values_)[*index] ? &*(*values_)[*index] : nullptr;
}

std::vector<ValueMember> Config::members() const {
    std::vector<ValueMember> members;
    for (std::size_t index = 0; index < values().size(); ++index) {
        if (const std::optional<Value>& value = values()[index]) {
            members.push_back({schema_->keys[index], *value});
        }
    }
    return members;
}

const std::vector<std::optional<Value>>& Config::values() const {
    static const std::vector<std::optional<Value>> none;
    return values_ == nullptr ? none : *values_;
}

bool Config::empty() const {
    return std::none_of(values().begin(), values().end(), [](const auto& value) {
        return value.has_value();
    });
}

bool operator==(const Config& left, const Config& right) {
    if (left.schema_ == right.schema_) {
        return left.values_ == right.values_ || left.values() == right.values();
    }
    return left.members() == right.members();
}

std::string to_text(const Config& config) {
    std::string text;
    for (const ValueMember& member : config.members()) {
        text += text.empty() ? "" : " ";
        text += member.key + "=" + to_argument(member.value);
    }
    return text;
}

bool meets(const Condition& condition, const Value& value) {
    return std::any_of(condition.any_of.begin(), condition.any_of.end(), [&](const Value& wanted) {
        return same(wanted, value);
    });
}

bool holds(const Conditions& conditions, const Config& config) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
        const Value* value = config.find(condition.key);
        return value != nullptr && meets(condition, *value);
    });
}

}  // namespace muster
