// SPDX-License-Identifier: Apache-2.0

#include "spec/yaml_text.hpp"

#include <cmath>

#include "spec/scalar.hpp"

namespace muster {
namespace {

std::string yaml_real(double number) {
    if (std::isnan(number)) {
        return ".nan";
    }
    if (std::isinf(number)) {
        return number > 0 ? ".inf" : "-.inf";
    }
    return to_json(Value(number));
}

}  // namespace

std::string yaml_text(std::string_view text) {
    constexpr std::string_view kFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/";
    constexpr std::string_view kRest =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/.0123456789-";
    const bool plain = !text.empty() && kFirst.find(text[0]) != std::string_view::npos &&
                       text.find_first_not_of(kRest) == std::string_view::npos &&
                       plain_value(text).as_text() != nullptr;
    if (plain) {
        return std::string(text);
    }
    std::string quoted;
    append_json(text, quoted);
    return quoted;
}

std::string yaml_value(const Value& value) {
    if (const std::string* text = value.as_text()) {
        return yaml_text(*text);
    }
    if (const double* real = value.as_real()) {
        return yaml_real(*real);
    }
    std::string out;
    if (const Value::List* list = value.as_list()) {
        for (const Value& item : *list) {
            out += (out.empty() ? "" : ", ") + yaml_value(item);
        }
        return "[" + out + "]";
    }
    if (const Value::Map* map = value.as_map()) {
        for (const ValueMember& member : *map) {
            out += (out.empty() ? "" : ", ") + yaml_text(member.key) + ": ";
            out += yaml_value(member.value);
        }
        return "{" + out + "}";
    }
    return to_json(value);
}

}  // namespace muster
