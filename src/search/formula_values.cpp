// SPDX-License-Identifier: Apache-2.0

#include "search/formula_values.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"

namespace muster {
namespace {

using Whole = std::int64_t;

Error failure(std::string message) {
    return {ErrorCode::InvalidInput, std::move(message)};
}

Error wrong_type(OpCode code, std::string_view wanted, const Value& value) {
    return failure(fmt::format("{} takes {}, not {}", symbol(code), wanted, to_json(value)));
}

Error too_large(OpCode code) {
    return failure(
        fmt::format("the result of {} does not fit a whole number of 64 bits", symbol(code))
    );
}

bool is_number(const Value& value) {
    return value.as_int() != nullptr || value.as_real() != nullptr;
}

/// A real result. What is not finite though everything that went in was is refused.
Result<Value> real(OpCode code, double result, bool finite_in) {
    if (!finite_in || std::isfinite(result)) {
        return Value(result);
    }
    const bool outside = std::isnan(result) || code == OpCode::Logarithm ||
                         code == OpCode::Logarithm2 || code == OpCode::Logarithm10;
    return failure(
        outside ? fmt::format("{} has no value there", symbol(code))
                : fmt::format("the result of {} does not fit a real number", symbol(code))
    );
}

/// The whole number that a real one already is.
Result<Value> whole(OpCode code, double number) {
    // 2^63 is a real number, the largest whole number is not.
    if (!(number >= -0x1p63 && number < 0x1p63)) {
        return too_large(code);
    }
    return Value(static_cast<Whole>(number));
}

template <class Number>
Result<Value> parse_text(OpCode code, const std::string& text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stop != end) {
        return wrong_type(code, "a number or a text that is one", Value(text));
    }
    return Value(number);
}

Result<Value> to_whole(const Value& operand) {
    if (const std::string* text = operand.as_text()) {
        return parse_text<Whole>(OpCode::ToInt, *text);
    }
    if (const bool* truth = operand.as_bool()) {
        return Value(Whole{*truth ? 1 : 0});
    }
    if (const double* number = operand.as_real()) {
        return whole(OpCode::ToInt, std::trunc(*number));
    }
    return operand.as_int() != nullptr ? Result<Value>(operand)
                                       : wrong_type(OpCode::ToInt, "a number or a text", operand);
}

Result<Value> to_real(const Value& operand) {
    if (const std::string* text = operand.as_text()) {
        return parse_text<double>(OpCode::ToReal, *text);
    }
    const std::optional<double> number = operand.number();
    return number ? Result<Value>(Value(*number))
                  : wrong_type(OpCode::ToReal, "a number or a text", operand);
}

Result<Value> negated(OpCode code, Whole number) {
    Whole result = 0;
    if (__builtin_sub_overflow(Whole{0}, number, &result)) {
        return too_large(code);
    }
    return Value(result);
}

/// Whole numbers that stay so.
Result<Value> apply_whole(OpCode code, Whole number) {
    switch (code) {
        case OpCode::Negate:
            return negated(code, number);
        case OpCode::Absolute:
            return number < 0 ? negated(code, number) : Value(number);
        default:
            return Value(number);
    }
}

Result<Value> apply_real(OpCode code, double number) {
    const bool finite = std::isfinite(number);
    switch (code) {
        case OpCode::Negate:
            return Value(-number);
        case OpCode::Absolute:
            return Value(std::fabs(number));
        case OpCode::Round:
            // To the even one when both are as near, as Python does.
            return whole(code, std::nearbyint(number));
        case OpCode::Floor:
            return whole(code, std::floor(number));
        case OpCode::Ceil:
            return whole(code, std::ceil(number));
        case OpCode::SquareRoot:
            return real(code, std::sqrt(number), finite);
        case OpCode::Exponential:
            return real(code, std::exp(number), finite);
        case OpCode::Logarithm:
            return real(code, std::log(number), finite);
        case OpCode::Logarithm2:
            return real(code, std::log2(number), finite);
        case OpCode::Logarithm10:
            return real(code, std::log10(number), finite);
        default:
            return Value(number);
    }
}

bool keeps_whole(OpCode code) {
    return code == OpCode::Negate || code == OpCode::Plus || code == OpCode::Absolute ||
           code == OpCode::Round || code == OpCode::Floor || code == OpCode::Ceil;
}

Result<Value> whole_power(Whole base, Whole exponent) {
    Whole result = 1;
    while (exponent > 0) {
        if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) {
            return too_large(OpCode::Power);
        }
        exponent /= 2;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            return too_large(OpCode::Power);
        }
    }
    return Value(result);
}

Result<Value> real_power(double base, double exponent) {
    if (base == 0 && exponent < 0) {
        return failure("division by zero (0 to a negative power)");
    }
    const double result = std::pow(base, exponent);
    return real(OpCode::Power, result, std::isfinite(base) && std::isfinite(exponent));
}

/// Rounded down, so that left == right * (left // right) + left % right.
Result<Value> floor_divide(Whole left, Whole right) {
    if (right == -1) {
        return negated(OpCode::FloorDivide, left);
    }
    const bool down = left % right != 0 && (left < 0) != (right < 0);
    return Value(left / right - (down ? 1 : 0));
}

/// Of the sign of `right`.
Whole modulo(Whole left, Whole right) {
    if (right == -1) {
        return 0;
    }
    const Whole rest = left % right;
    return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

double modulo(double left, double right) {
    const double rest = std::fmod(left, right);
    return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

Result<Value> calculate(OpCode code, Whole left, Whole right) {
    Whole result = 0;
    bool overflow = false;
    switch (code) {
        case OpCode::Add:
            overflow = __builtin_add_overflow(left, right, &result);
            break;
        case OpCode::Subtract:
            overflow = __builtin_sub_overflow(left, right, &result);
            break;
        case OpCode::Multiply:
            overflow = __builtin_mul_overflow(left, right, &result);
            break;
        case OpCode::Divide:
            return Value(static_cast<double>(left) / static_cast<double>(right));
        case OpCode::FloorDivide:
            return floor_divide(left, right);
        case OpCode::Modulo:
            return Value(modulo(left, right));
        default:
            check(code == OpCode::Power, "an operator on two whole numbers is one of seven");
            return right < 0 ? real_power(static_cast<double>(left), static_cast<double>(right))
                             : whole_power(left, right);
    }
    return overflow ? Result<Value>(too_large(code)) : Value(result);
}

Result<Value> calculate(OpCode code, double left, double right) {
    const bool finite = std::isfinite(left) && std::isfinite(right);
    switch (code) {
        case OpCode::Add:
            return real(code, left + right, finite);
        case OpCode::Subtract:
            return real(code, left - right, finite);
        case OpCode::Multiply:
            return real(code, left * right, finite);
        case OpCode::Divide:
            return real(code, left / right, finite);
        case OpCode::FloorDivide:
            // Not floor(left / right): the quotient may have been rounded up to a whole number.
            return real(code, std::round((left - modulo(left, right)) / right), finite);
        case OpCode::Modulo:
            return real(code, modulo(left, right), finite);
        default:
            check(code == OpCode::Power, "an operator on two real numbers is one of seven");
            return real_power(left, right);
    }
}

Result<Value> arithmetic(OpCode code, const Value& left, const Value& right) {
    if (code == OpCode::Add && left.as_text() != nullptr && right.as_text() != nullptr) {
        return Value(*left.as_text() + *right.as_text());
    }
    if (!is_number(left) || !is_number(right)) {
        return failure(fmt::format(
            "{} takes two numbers{}, not {} and {}",
            symbol(code),
            code == OpCode::Add ? " or two texts" : "",
            to_json(left),
            to_json(right)
        ));
    }
    const bool divides =
        code == OpCode::Divide || code == OpCode::FloorDivide || code == OpCode::Modulo;
    if (divides && *right.number() == 0) {
        return failure("division by zero");
    }
    if (left.as_int() != nullptr && right.as_int() != nullptr) {
        return calculate(code, *left.as_int(), *right.as_int());
    }
    return calculate(code, *left.number(), *right.number());
}

/// Exact for both kinds of numbers: a long double holds every whole number of 64 bits.
long double exact(const Value& value) {
    const Whole* whole_number = value.as_int();
    return whole_number != nullptr ? static_cast<long double>(*whole_number)
                                   : static_cast<long double>(*value.as_real());
}

template <class T>
bool compare(OpCode code, const T& left, const T& right) {
    switch (code) {
        case OpCode::Less:
            return left < right;
        case OpCode::LessEqual:
            return left <= right;
        case OpCode::Greater:
            return left > right;
        default:
            check(code == OpCode::GreaterEqual, "an order is one of four");
            return left >= right;
    }
}

bool equal(const Value& left, const Value& right) {
    return is_number(left) && is_number(right) ? exact(left) == exact(right) : left == right;
}

Result<Value> ordered(OpCode code, const Value& left, const Value& right) {
    if (is_number(left) && is_number(right)) {
        return Value(compare(code, exact(left), exact(right)));
    }
    if (left.as_text() != nullptr && right.as_text() != nullptr) {
        return Value(compare(code, *left.as_text(), *right.as_text()));
    }
    return failure(fmt::format(
        "{} compares two numbers or two texts, not {} with {}",
        symbol(code),
        to_json(left),
        to_json(right)
    ));
}

/// The first of equals; a NaN never replaces a number.
Result<Value> extreme(OpCode code, const Value& left, const Value& right) {
    for (const Value* operand : {&left, &right}) {
        if (!is_number(*operand)) {
            return wrong_type(code, "numbers", *operand);
        }
    }
    const bool replace =
        code == OpCode::Minimum ? exact(right) < exact(left) : exact(right) > exact(left);
    return replace ? right : left;
}

}  // namespace

Result<bool> truth(OpCode code, const Value& value) {
    if (const bool* truth = value.as_bool()) {
        return *truth;
    }
    return wrong_type(code, "true or false", value);
}

Result<Value> apply(OpCode code, const Value& operand) {
    if (code == OpCode::ToText) {
        return Value(to_argument(operand));
    }
    if (code == OpCode::ToInt) {
        return to_whole(operand);
    }
    if (code == OpCode::ToReal) {
        return to_real(operand);
    }
    if (code == OpCode::Not || code == OpCode::RequireTruth) {
        const Result<bool> held = truth(code, operand);
        return held ? Result<Value>(Value(*held == (code == OpCode::RequireTruth))) : held.error();
    }
    if (!is_number(operand)) {
        return wrong_type(code, "a number", operand);
    }
    return operand.as_int() != nullptr && keeps_whole(code) ? apply_whole(code, *operand.as_int())
                                                            : apply_real(code, *operand.number());
}

Result<Value> apply(OpCode code, const Value& left, const Value& right) {
    switch (code) {
        case OpCode::Equal:
            return Value(equal(left, right));
        case OpCode::NotEqual:
            return Value(!equal(left, right));
        case OpCode::Less:
        case OpCode::LessEqual:
        case OpCode::Greater:
        case OpCode::GreaterEqual:
            return ordered(code, left, right);
        case OpCode::Minimum:
        case OpCode::Maximum:
            return extreme(code, left, right);
        default:
            return arithmetic(code, left, right);
    }
}

}  // namespace muster
