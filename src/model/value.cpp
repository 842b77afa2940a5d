// SPDX-License-Identifier: Apache-2.0

#include "muster/value.hpp"

#include <cmath>

#include <fmt/format.h>

namespace muster {
namespace {

bool same_real(double left, double right) {
    return left == right || (std::isnan(left) && std::isnan(right));
}

}  // namespace

Value::Value(List list) : state_(std::move(list)) {}
Value::Value(Map map) : state_(std::move(map)) {}

const Value::List* Value::as_list() const {
    return std::get_if<List>(&state_);
}
const Value::Map* Value::as_map() const {
    return std::get_if<Map>(&state_);
}

std::optional<double> Value::number() const {
    if (const double* real = as_real()) {
        return *real;
    }
    if (const std::int64_t* whole = as_int()) {
        return static_cast<double>(*whole);
    }
    if (const bool* truth = as_bool()) {
        return *truth ? 1.0 : 0.0;
    }
    return std::nullopt;
}

bool operator==(const Value& left, const Value& right) {
    if (left.as_real() != nullptr && right.as_real() != nullptr) {
        return same_real(*left.as_real(), *right.as_real());
    }
    return left.state_ == right.state_;
}

std::string to_argument(const Value& value) {
    return value.as_text() != nullptr ? *value.as_text() : to_json(value);
}

}  // namespace muster
