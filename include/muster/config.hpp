// SPDX-License-Identifier: Apache-2.0
//
// config - the values chosen for one trial.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/value.hpp"

namespace muster {

/// The keys of every config of one search space, in the order of the space; shared, so that a
/// waiting trial costs its values alone. Nested groups are joined with '/': "augment/flip".
struct ConfigSchema {
    std::vector<std::string> keys;

    /// The place of `key`, if it is there.
    std::optional<std::size_t> index_of(std::string_view key) const;

    friend bool operator==(const ConfigSchema&, const ConfigSchema&) = default;
};

/// The values chosen for one trial. A key whose `when` does not hold has no value. A config never
/// changes, so that copies share what it holds.
class Config {
  public:
    Config() = default;

    /// REQUIRES: one value, or nothing, for each key of `schema`.
    Config(std::shared_ptr<const ConfigSchema> schema, std::vector<std::optional<Value>> values);

    /// A config with a schema of its own.
    static Config from_members(std::vector<ValueMember> members);

    /// The value of `key`, or nullptr when there is none.
    const Value* find(std::string_view key) const;
    /// The number of `key`, a truth as 0 or 1; `fallback` when there is none.
    double number(std::string_view key, double fallback = 0) const {
        const Value* value = find(key);
        return value == nullptr ? fallback : value->number().value_or(fallback);
    }

    /// Every key that has a value, with it, in the order of the space.
    std::vector<ValueMember> members() const;

    const std::shared_ptr<const ConfigSchema>& schema() const { return schema_; }
    /// In the order of the schema's keys.
    const std::vector<std::optional<Value>>& values() const;
    bool empty() const;

    /// Same keys with the same values in the same order.
    friend bool operator==(const Config& left, const Config& right);

  private:
    std::shared_ptr<const ConfigSchema> schema_;
    std::shared_ptr<const std::vector<std::optional<Value>>> values_;
};

/// One JSON object, nested again: {"lr": 0.1, "augment": {"flip": true}}. When both "a" and "a/b"
/// exist the joined key stays as it is.
std::string to_json(const Config& config);

/// "lr=0.1 augment/flip=true": for tables and messages.
std::string to_text(const Config& config);

/// `key` has one of these values.
struct Condition {
    std::string key;
    std::vector<Value> any_of;

    friend bool operator==(const Condition&, const Condition&) = default;
};

/// Whether `value` is one of the condition's. 1 meets 1.0, not true.
bool meets(const Condition& condition, const Value& value);

/// All must hold; none is no condition.
using Conditions = std::vector<Condition>;

/// Whether every condition holds. A key without a value meets none. 1 meets 1.0, not true.
bool holds(const Conditions& conditions, const Config& config);

}  // namespace muster
