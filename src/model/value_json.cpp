// SPDX-License-Identifier: Apache-2.0
//
// value_json - values and configs as JSON text and back. Writing is by hand, since it is on the
// path of every trial and report; reading is nlohmann's.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "muster/config.hpp"
#include "muster/value.hpp"

#include "base/utf8.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

void append_real(double number, std::string& out) {
    if (std::isnan(number)) {
        out += "\"nan\"";
        return;
    }
    if (std::isinf(number)) {
        out += number > 0 ? "\"inf\"" : "\"-inf\"";
        return;
    }
    const std::size_t start = out.size();
    fmt::format_to(std::back_inserter(out), "{}", number);
    if (out.find_first_of(".e", start) == std::string::npos) {
        out += ".0";
    }
}

Value from_json(const Json& json) {
    switch (json.type()) {
        case Json::value_t::boolean:
            return json.get<bool>();
        case Json::value_t::number_integer:
            return json.get<std::int64_t>();
        case Json::value_t::number_unsigned: {
            const auto number = json.get<std::uint64_t>();
            return number <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                       ? Value(static_cast<std::int64_t>(number))
                       : Value(static_cast<double>(number));
        }
        case Json::value_t::number_float:
            return json.get<double>();
        case Json::value_t::string:
            return json.get<std::string>();
        case Json::value_t::array: {
            Value::List list;
            for (const Json& item : json) {
                list.push_back(from_json(item));
            }
            return list;
        }
        case Json::value_t::object: {
            Value::Map map;
            for (const auto& member : json.items()) {
                map.push_back({member.key(), from_json(member.value())});
            }
            return map;
        }
        case Json::value_t::null:
        case Json::value_t::binary:
        case Json::value_t::discarded:
            break;
    }
    return {};
}

/// Sets "a/b" inside the map of "a"; false when "a" is there and is no group.
bool insert_nested(Json& object, std::string_view key, const Json& value) {
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos) {
        object[std::string(key)] = value;
        return true;
    }
    const std::string head(key.substr(0, slash));
    if (object.contains(head) && !object[head].is_object()) {
        return false;
    }
    if (!object.contains(head)) {
        object[head] = Json::object();
    }
    return insert_nested(object[head], key.substr(slash + 1), value);
}

}  // namespace

void append_json(std::string_view text, std::string& out) {
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte == '"' || byte == '\\') {
            out += '\\';
            out += text[at++];
        } else if (byte == '\n') {
            out += "\\n";
            ++at;
        } else if (byte == '\t') {
            out += "\\t";
            ++at;
        } else if (byte < 0x20 || byte == 0x7F) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", unsigned{byte});
            ++at;
        } else if (const std::size_t length = utf8_length(text, at); length > 0) {
            out += text.substr(at, length);
            at += length;
        } else {
            out += "\xEF\xBF\xBD";
            ++at;
        }
    }
    out += '"';
}

void append_json(const Value& value, std::string& out) {
    if (value.is_null()) {
        out += "null";
    } else if (const bool* truth = value.as_bool()) {
        out += *truth ? "true" : "false";
    } else if (const std::int64_t* whole = value.as_int()) {
        fmt::format_to(std::back_inserter(out), "{}", *whole);
    } else if (const double* real = value.as_real()) {
        append_real(*real, out);
    } else if (const std::string* text = value.as_text()) {
        append_json(std::string_view(*text), out);
    } else if (const Value::List* list = value.as_list()) {
        out += '[';
        for (std::size_t index = 0; index < list->size(); ++index) {
            out += index == 0 ? "" : ", ";
            append_json((*list)[index], out);
        }
        out += ']';
    } else if (const Value::Map* map = value.as_map()) {
        out += '{';
        for (std::size_t index = 0; index < map->size(); ++index) {
            out += index == 0 ? "" : ", ";
            append_json(std::string_view((*map)[index].key), out);
            out += ": ";
            append_json((*map)[index].value, out);
        }
        out += '}';
    }
}

std::string to_json(const Value& value) {
    std::string out;
    append_json(value, out);
    return out;
}

Result<Value> value_from_json(std::string_view json) {
    try {
        return from_json(Json::parse(json));
    } catch (const std::exception& problem) {
        return Error{ErrorCode::Corrupt, problem.what()};
    }
}

std::optional<double> non_finite(std::string_view text) {
    if (text == "nan") {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (text == "inf") {
        return std::numeric_limits<double>::infinity();
    }
    if (text == "-inf") {
        return -std::numeric_limits<double>::infinity();
    }
    return std::nullopt;
}

std::string to_json(const Config& config) {
    const std::vector<ValueMember> members = config.members();
    bool nested = false;
    for (const ValueMember& member : members) {
        nested = nested || member.key.find('/') != std::string::npos;
    }
    if (!nested) {
        return to_json(Value(Value::Map(members)));
    }
    // Groups are rare: build them by nlohmann, keep the fast path for flat configs.
    Json object = Json::object();
    for (const ValueMember& member : members) {
        const Json value = Json::parse(to_json(member.value));
        if (!insert_nested(object, member.key, value)) {
            object[member.key] = value;
        }
    }
    return to_json(from_json(object));
}

}  // namespace muster
