// SPDX-License-Identifier: Apache-2.0

#include "spec/set_values.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "spec/read_domain.hpp"
#include "spec/section.hpp"

namespace muster {
namespace {

/// Maps whose keys are the user's: nothing below them is a section.
bool has_free_keys(std::string_view section) {
    constexpr std::array<std::string_view, 6> kFree{
        "space", "stop", "nodes", "cluster_resources", "trial.env", "trial.files"};
    return std::find(kFree.begin(), kFree.end(), section) != kFree.end();
}

YamlNode& member(YamlNode& map, const std::string& key, Place place) {
    if (YamlNode* found = map.find(key)) {
        return *found;
    }
    map.entries.push_back({key, place, {}});
    map.entries.back().value.place = place;
    return map.entries.back().value;
}

/// The node of a key of the space: "a/b" is where the file has it, joined or nested.
YamlNode& space_member(YamlNode& space, const std::string& key, Place place) {
    if (YamlNode* found = space.find(key)) {
        return *found;
    }
    for (std::size_t slash = key.find('/'); slash != std::string::npos;
         slash = key.find('/', slash + 1)) {
        YamlNode* group = space.find(key.substr(0, slash));
        if (group != nullptr && group->is_map()) {
            return space_member(*group, key.substr(slash + 1), place);
        }
    }
    return member(space, key, place);
}

/// Sets the places of a whole value, so that problems in it name the --set.
class Setter {
  public:
    Setter(YamlNode& root, Problems& problems, Place place)
        : root_(root),
          problems_(problems),
          place_(place) {}

    void set(const std::string& key, YamlNode value) {
        YamlNode* map = &root_;
        std::string section;
        std::string rest = key;
        while (true) {
            if (!enter(*map, section)) {
                return;
            }
            const bool is_last = has_free_keys(section) || rest.find('.') == std::string::npos;
            const std::string name = is_last ? rest : rest.substr(0, rest.find('.'));
            if (name.empty()) {
                problems_.add(place_, "", "the key is not complete; write key=value");
                return;
            }
            if (section == "space" && is_inside_domain(*map, name)) {
                return;
            }
            YamlNode& inner =
                section == "space" ? space_member(*map, name, place_) : member(*map, name, place_);
            if (is_last) {
                replace(*map, inner, std::move(value));
                return;
            }
            section += (section.empty() ? "" : ".") + name;
            rest = rest.substr(rest.find('.') + 1);
            map = &inner;
        }
    }

  private:
    /// Makes an absent section a map; false when it is something else.
    bool enter(YamlNode& node, const std::string& section) {
        if (node.is_null()) {
            node.kind = YamlNode::Kind::Map;
            node.place = place_;
        }
        if (!node.is_map()) {
            problems_.add(
                place_,
                section,
                fmt::format("{} is {} in the file; set it as a whole", section, describe(node))
            );
        }
        return node.is_map();
    }

    /// `space.lr.uniform` would be a new key beside `lr`, which nobody means.
    bool is_inside_domain(const YamlNode& space, const std::string& name) {
        const std::size_t dot = name.rfind('.');
        const std::string key = name.substr(0, dot);
        if (dot == std::string::npos || space.find(key) == nullptr ||
            !is_domain_name(name.substr(dot + 1))) {
            return false;
        }
        problems_.add(
            place_,
            "space." + key,
            fmt::format(
                "a domain is set as a whole: --set 'space.{}={{{}: …}}'", key, name.substr(dot + 1)
            )
        );
        return true;
    }

    void replace(YamlNode& map, YamlNode& inner, YamlNode value) {
        for (Entry& entry : map.entries) {
            if (&entry.value == &inner) {
                entry.place = place_;
            }
        }
        value.place = place_;
        inner = std::move(value);
    }

    YamlNode& root_;
    Problems& problems_;
    Place place_;
};

}  // namespace

void apply_sets(const std::vector<std::string>& sets, YamlNode& root, Problems& problems) {
    for (std::size_t index = 0; index < sets.size(); ++index) {
        const Place place{1, 1, static_cast<std::uint32_t>(index + 1)};
        const std::string& set = sets[index];
        const std::size_t equals = set.find('=');
        if (equals == std::string::npos || equals == 0) {
            problems.add(place, "", "expected key=value, such as trial.time_limit=10m");
            continue;
        }
        // Of the value read_document() says so itself.
        if (find_not_utf8(set.substr(0, equals))) {
            problems.add(place, "", "the key is not UTF-8");
            continue;
        }
        YamlNode value;
        if (read_document(set.substr(equals + 1), value, problems, place.set)) {
            Setter(root, problems, place).set(set.substr(0, equals), std::move(value));
        }
    }
}

}  // namespace muster
