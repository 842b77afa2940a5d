// SPDX-License-Identifier: Apache-2.0

#include "spec/read_space.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "search/search_space_check.hpp"
#include "spec/read_domain.hpp"
#include "spec/section.hpp"

namespace muster {
namespace {

constexpr std::string_view kWhen = "when";
constexpr std::string_view kOwnPrefix = "muster.";
// Conditions are compared with every key.
constexpr std::size_t kMostKeys = 2000;
constexpr std::size_t kMostComparisons = 1'000'000;

std::vector<std::string> keys_of(const SearchSpace& space) {
    std::vector<std::string> keys;
    keys.reserve(space.parameters.size());
    for (const Parameter& parameter : space.parameters) {
        keys.push_back(parameter.key);
    }
    return keys;
}

/// Why `key`, one level of it, cannot be a key; empty when it can.
std::string wrong_key(const std::string& key) {
    if (key.empty() || key.front() == '/' || key.back() == '/' ||
        key.find("//") != std::string::npos) {
        return "a key and each of its groups need a name";
    }
    if (key.find_first_of("{}\n\t") != std::string::npos) {
        return "a key must not hold braces, tabs or newlines, since {key} stands for its value";
    }
    if (key.substr(0, kOwnPrefix.size()) == kOwnPrefix) {
        return "keys that begin with 'muster.' are muster's own";
    }
    return key == kWhen ? "'when' belongs beside a domain or into a group" : "";
}

/// Reads the tree of groups into a flat list. Conditions name keys, so they are read last.
class SpaceReader {
  public:
    explicit SpaceReader(Problems& problems) : problems_(problems) {}

    void read_group(
        const YamlNode& group,
        const std::string& prefix,
        std::vector<const YamlNode*> whens
    ) {
        if (const YamlNode* when = group.find(kWhen); when != nullptr && !prefix.empty()) {
            whens.push_back(when);
        }
        for (const Entry& entry : group.entries) {
            const bool is_when = entry.key == kWhen && !prefix.empty();
            const std::string wrong = is_when ? "" : wrong_key(entry.key);
            const std::string key = prefix + entry.key;
            if (!wrong.empty()) {
                problems_.add(entry.place, "space." + key, wrong);
            } else if (!is_when) {
                read_entry(entry, key, whens);
            }
        }
    }

    SpaceReading finish() {
        for (std::size_t index = 0; index < whens_.size(); ++index) {
            Parameter& parameter = reading_.space.parameters[index];
            for (const YamlNode* when : whens_[index]) {
                const Conditions more = read_conditions(
                    *when, fmt::format("space.{}.when", parameter.key), reading_.space, problems_
                );
                parameter.when.insert(parameter.when.end(), more.begin(), more.end());
            }
        }
        return std::move(reading_);
    }

  private:
    void read_entry(
        const Entry& entry,
        const std::string& key,
        const std::vector<const YamlNode*>& whens
    ) {
        const YamlNode& value = entry.value;
        if (!value.is_map()) {
            add(entry, key, Constant{to_value(value)}, whens);
            return;
        }
        const auto domain =
            std::find_if(value.entries.begin(), value.entries.end(), [](const Entry& inner) {
                return is_domain_name(inner.key);
            });
        if (domain != value.entries.end()) {
            read_domain_map(entry, *domain, key, whens);
        } else if (value.entries.empty()) {
            problems_.add(value.place, "space." + key, "an empty map is neither domain nor group");
        } else if (!is_misspelt_domain(value, key)) {
            read_group(value, key + "/", whens);
        }
    }

    void read_domain_map(
        const Entry& entry,
        const Entry& domain,
        const std::string& key,
        std::vector<const YamlNode*> whens
    ) {
        for (const Entry& other : entry.value.entries) {
            if (&other == &domain) {
                continue;
            }
            if (other.key == kWhen) {
                whens.push_back(&other.value);
                continue;
            }
            problems_.add(
                other.place,
                fmt::format("space.{}.{}", key, other.key),
                fmt::format("beside the domain {} only `when` may stand", domain.key)
            );
        }
        if (std::optional<Domain> read =
                read_domain(domain.key, domain.value, "space." + key, problems_)) {
            add(entry, key, std::move(*read), whens);
        } else {
            // The key exists all the same: others may name it.
            add(entry, key, Constant{}, whens);
        }
    }

    /// {unifrom: [0, 1]} would else be a group with one constant.
    bool is_misspelt_domain(const YamlNode& map, const std::string& key) {
        for (const Entry& entry : map.entries) {
            const std::string meant = nearest(entry.key, domain_names());
            if (entry.value.is_map() || meant.empty() ||
                (!entry.value.is_list() && meant != "expr")) {
                continue;
            }
            problems_.add(
                entry.place,
                "space." + key,
                fmt::format("unknown domain '{}'; did you mean '{}'?", entry.key, meant)
            );
            add({key, entry.place, {}}, key, Constant{}, {});
            return true;
        }
        return false;
    }

    void add(
        const Entry& entry,
        const std::string& key,
        Domain domain,
        const std::vector<const YamlNode*>& whens
    ) {
        if (!reading_.places.emplace(key, entry.place).second) {
            problems_.add(entry.place, "space." + key, "the key is written twice; keep one");
            return;
        }
        if (reading_.space.parameters.size() == kMostKeys) {
            problems_.add(entry.place, "space", fmt::format("more than {} keys", kMostKeys));
        }
        if (reading_.space.parameters.size() >= kMostKeys) {
            reading_.places.erase(key);
            return;
        }
        reading_.space.parameters.push_back({key, std::move(domain), {}});
        whens_.push_back(whens);
    }

    Problems& problems_;
    SpaceReading reading_;
    /// Of each parameter.
    std::vector<std::vector<const YamlNode*>> whens_;
};

/// Adds what is wrong with the space as a whole, at the key that the message begins with.
void add_problem_of_key(const SpaceReading& reading, const Error& error, Problems& problems) {
    // Keys may hold ": ", so the longest one that fits is meant.
    std::string_view key;
    Place place;
    for (const auto& [name, at] : reading.places) {
        if (error.message.substr(0, name.size() + 2) == name + ": " && name.size() >= key.size()) {
            key = name;
            place = at;
        }
    }
    const std::string path = key.empty() ? "space" : "space." + std::string(key);
    problems.add(place, path, key.empty() ? error.message : error.message.substr(key.size() + 2));
}

void check_space(const SpaceReading& reading, Problems& problems) {
    bool each_is_right = true;
    for (const Parameter& parameter : reading.space.parameters) {
        if (std::holds_alternative<Expression>(parameter.domain)) {
            continue;
        }
        const Status alone = validate(SearchSpace{{{parameter.key, parameter.domain, {}}}});
        if (!alone) {
            each_is_right = false;
            add_problem_of_key(reading, alone.error(), problems);
        }
    }
    const Status whole = each_is_right ? validate(reading.space) : Status(Ok{});
    if (!whole) {
        add_problem_of_key(reading, whole.error(), problems);
    }
}

/// The values that a domain takes, when they are listed.
const std::vector<Value>* listed_values(const SearchSpace& space, const std::string& key) {
    for (const Parameter& parameter : space.parameters) {
        if (parameter.key != key) {
            continue;
        }
        if (const auto* choice = std::get_if<Choice>(&parameter.domain)) {
            return &choice->values;
        }
        if (const auto* grid = std::get_if<Grid>(&parameter.domain)) {
            return &grid->values;
        }
    }
    return nullptr;
}

/// "; did you mean …?", or else the first few that there are, behind `opening`.
std::string
instead_of(std::string_view name, const std::vector<std::string>& known, std::string_view opening) {
    constexpr std::size_t kMostShown = 8;
    std::string text = did_you_mean(name, known);
    if (!text.empty()) {
        return text;
    }
    for (std::size_t index = 0; index < std::min(known.size(), kMostShown); ++index) {
        text += (index == 0 ? fmt::format("; {} ", opening) : ", ") + known[index];
    }
    return text + (known.size() > kMostShown ? ", …" : "");
}

void check_possible(
    const Condition& condition,
    const std::vector<Value>& values,
    const YamlNode& node,
    std::string_view path,
    Problems& problems
) {
    for (const Value& wanted : condition.any_of) {
        const bool possible = std::any_of(values.begin(), values.end(), [&](const Value& value) {
            return holds(
                {{condition.key, {wanted}}}, Config::from_members({{condition.key, value}})
            );
        });
        if (!possible) {
            std::vector<std::string> texts;
            texts.reserve(values.size());
            for (const Value& value : values) {
                texts.push_back(to_argument(value));
            }
            const std::string text = to_argument(wanted);
            problems.add(
                node.place,
                path,
                fmt::format(
                    "{} is never {}{}",
                    condition.key,
                    wanted.as_text() != nullptr ? "'" + text + "'" : text,
                    instead_of(text, texts, "it is")
                )
            );
        }
    }
}

struct FlatMember {
    std::string key;
    const Entry* entry = nullptr;
};

/// Joins groups with '/' until a key of the space is reached.
void flatten(
    const YamlNode& map,
    const std::string& prefix,
    std::string_view path,
    const std::vector<std::string>& keys,
    std::vector<FlatMember>& members,
    Problems& problems
) {
    for (const Entry& entry : map.entries) {
        const std::string key = prefix + entry.key;
        const bool is_key = std::find(keys.begin(), keys.end(), key) != keys.end();
        const bool is_group = std::any_of(keys.begin(), keys.end(), [&](const std::string& known) {
            return known.substr(0, key.size() + 1) == key + "/";
        });
        if (is_key) {
            members.push_back({key, &entry});
        } else if (is_group && entry.value.is_map()) {
            flatten(entry.value, key + "/", path, keys, members, problems);
        } else {
            problems.add(
                entry.place,
                fmt::format("{}.{}", path, key),
                fmt::format("no key of the space{}", instead_of(key, keys, "it has"))
            );
        }
    }
}

std::vector<FlatMember> flat_members(
    const YamlNode& node,
    std::string_view path,
    const SearchSpace& space,
    Problems& problems
) {
    std::vector<FlatMember> members;
    if (!node.is_map()) {
        problems.add(node.place, path, expected("a map of keys of the space", node));
        return members;
    }
    flatten(node, "", path, keys_of(space), members, problems);
    return members;
}

}  // namespace

std::vector<std::string> SpaceReading::keys() const {
    return keys_of(space);
}

SpaceReading read_space(const YamlNode* node, Problems& problems) {
    if (node == nullptr || node->is_null()) {
        return {};
    }
    if (!node->is_map()) {
        problems.add(
            node->place, "space", expected("a map such as {lr: {uniform: [0, 1]}}", *node)
        );
        return {};
    }
    const std::size_t before = problems.count();
    SpaceReader reader(problems);
    reader.read_group(*node, "", {});
    SpaceReading reading = reader.finish();
    if (problems.count() == before) {
        check_space(reading, problems);
    }
    return reading;
}

Conditions read_conditions(
    const YamlNode& node,
    std::string_view path,
    const SearchSpace& space,
    Problems& problems
) {
    Conditions conditions;
    for (const FlatMember& member : flat_members(node, path, space, problems)) {
        const YamlNode& value = member.entry->value;
        Condition condition{member.key, {}};
        if (value.is_list()) {
            for (const YamlNode& item : value.items) {
                condition.any_of.push_back(to_value(item));
            }
        } else {
            condition.any_of.push_back(to_value(value));
        }
        const std::string full = fmt::format("{}.{}", path, member.key);
        if (condition.any_of.empty()) {
            problems.add(value.place, full, "an empty list of values never holds");
        }
        const std::vector<Value>* values = listed_values(space, member.key);
        if (values != nullptr && values->size() * condition.any_of.size() < kMostComparisons) {
            check_possible(condition, *values, value, full, problems);
        }
        conditions.push_back(std::move(condition));
    }
    return conditions;
}

std::vector<ValueMember> read_members(
    const YamlNode& node,
    std::string_view path,
    const SearchSpace& space,
    Problems& problems
) {
    std::vector<ValueMember> members;
    for (const FlatMember& member : flat_members(node, path, space, problems)) {
        members.push_back({member.key, to_value(member.entry->value)});
    }
    return members;
}

}  // namespace muster
