// SPDX-License-Identifier: Apache-2.0

#include "muster/trial_context.hpp"

#include <charconv>
#include <fstream>
#include <iterator>

namespace muster {
namespace {

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        parts.push_back(text.substr(at, comma - at));
        at = comma + 1;
    }
    return parts;
}

void flatten(const std::string& prefix, const Value::Map& map, std::vector<ValueMember>& members) {
    for (const ValueMember& member : map) {
        if (const Value::Map* inner = member.value.as_map()) {
            flatten(prefix + member.key + "/", *inner, members);
        } else {
            members.push_back({prefix + member.key, member.value});
        }
    }
}

Config config_of(const std::string& json) {
    const Result<Value> value = value_from_json(json);
    std::vector<ValueMember> members;
    if (value.ok() && value->as_map() != nullptr) {
        flatten("", *value->as_map(), members);
    }
    return Config::from_members(std::move(members));
}

const Value* member_of(const Value& value, std::string_view key) {
    if (const Value::Map* map = value.as_map()) {
        for (const ValueMember& member : *map) {
            if (member.key == key) {
                return &member.value;
            }
        }
    }
    return nullptr;
}

TrialBundle bundle_of(const Value& value) {
    TrialBundle bundle;
    const Value* host = member_of(value, "host");
    if (host != nullptr && host->as_text() != nullptr) {
        bundle.host = *host->as_text();
    }
    const Value* cores = member_of(value, "cores");
    if (cores != nullptr && cores->as_list() != nullptr) {
        for (const Value& core : *cores->as_list()) {
            bundle.cores.push_back(core.as_int() != nullptr ? *core.as_int() : -1);
        }
    }
    const Value* devices = member_of(value, "devices");
    if (devices != nullptr && devices->as_list() != nullptr) {
        for (const Value& device : *devices->as_list()) {
            bundle.devices.push_back(device.as_text() != nullptr ? *device.as_text() : "");
        }
    }
    return bundle;
}

}  // namespace

TrialContext::TrialContext() : id_(trial::id()) {
    std::ifstream file(trial::detail::environment("MUSTER_CONFIG"), std::ios::binary);
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    fields_ = trial::parse_fields(json).value_or(trial::Fields{});
    config_ = config_of(json);
    const std::string seed = trial::detail::environment("MUSTER_SEED");
    std::from_chars(seed.data(), seed.data() + seed.size(), seed_);
    const Result<Value> bundles = value_from_json(trial::detail::environment("MUSTER_BUNDLES"));
    if (bundles.ok() && bundles->as_list() != nullptr) {
        for (const Value& bundle : *bundles->as_list()) {
            bundles_.push_back(bundle_of(bundle));
        }
    }
    devices_ = split(trial::detail::environment("CUDA_VISIBLE_DEVICES"));
}

std::string TrialContext::attempt() const {
    return trial::detail::environment("MUSTER_ATTEMPT");
}

std::string TrialContext::why_not(std::string_view key) const {
    for (const trial::Field& field : fields_) {
        if (field.name == key) {
            return "config: '" + std::string(key) + "' is " + field.text +
                   ", which is not of the type asked for";
        }
    }
    return "config: there is no '" + std::string(key) + "'; there is " + to_text(config_);
}

}  // namespace muster
