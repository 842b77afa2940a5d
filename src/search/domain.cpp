// SPDX-License-Identifier: Apache-2.0

#include "search/domain.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "search/sample.hpp"

namespace muster {
namespace {

// Up to here a double counts every whole number.
constexpr double kMostMultiples = 0x1p53;
// Normal draws lie within 13 standard deviations of the mean; this leaves them room.
constexpr double kFarthest = 40;
// Of q: how far a bound may be from a multiple.
constexpr double kTolerance = 1e-6;
// Values of a list that a message shows.
constexpr std::size_t kMostShown = 20;

Error refuse(const Domain& domain, const std::string& reason) {
    return {ErrorCode::InvalidInput, to_text(domain) + ": " + reason};
}

std::string list_text(const char* name, const std::vector<Value>& values) {
    std::string text = fmt::format("{} [", name);
    for (std::size_t at = 0; at < values.size(); ++at) {
        text += at == 0 ? "" : ", ";
        if (at == kMostShown) {
            return text + fmt::format("and {} more]", values.size() - at);
        }
        append_json(values[at], text);
    }
    return text + "]";
}

template <class Number>
std::string
bounds_text(const char* prefix, const char* name, Number first, Number second, Number q) {
    const std::string head = fmt::format(
        "{}{}{} [{}, {}",
        q != 0 ? "q" : "",
        prefix,
        name,
        to_argument(Value(first)),
        to_argument(Value(second))
    );
    return head + (q != 0 ? ", " + to_argument(Value(q)) : std::string()) + "]";
}

bool is_multiple(double number, double q) {
    const double count = number / q;
    // The division itself is off by a few units in the last place of a large count.
    const double rounding = std::fabs(count) * 1e-15;
    return std::fabs(count - std::round(count)) <= kTolerance + rounding;
}

/// The multiples of q around a number that is none: "0.3 or 0.4".
std::string neighbours(double number, double q) {
    const auto below = static_cast<std::int64_t>(std::floor(number / q));
    return fmt::format(
        "{} or {}", to_json(Value(multiple(below, q))), to_json(Value(multiple(below + 1, q)))
    );
}

std::string neighbours(std::int64_t number, std::int64_t q) {
    std::int64_t above = 0;
    const std::int64_t below = number - number % q - (number % q < 0 ? q : 0);
    if (__builtin_add_overflow(below, q, &above)) {
        return to_json(Value(below));
    }
    return fmt::format("{} or {}", below, above);
}

template <class Bounds>
Status validate_order(const Bounds& domain) {
    if (!(domain.lower < domain.upper)) {
        return refuse(
            domain,
            fmt::format(
                "the lower bound {} must be below the upper bound {}",
                to_argument(Value(domain.lower)),
                to_argument(Value(domain.upper))
            )
        );
    }
    if (domain.log && domain.lower <= 0) {
        return refuse(
            domain,
            fmt::format(
                "a logarithmic range needs a lower bound above 0, not {}",
                to_argument(Value(domain.lower))
            )
        );
    }
    return Ok{};
}

Status validate_one(const RealDomain& domain) {
    for (const double number : {domain.lower, domain.upper, domain.q}) {
        if (!std::isfinite(number)) {
            return refuse(domain, "bounds and q must be finite numbers");
        }
    }
    if (domain.q < 0) {
        return refuse(domain, "q must be above 0");
    }
    if (Status order = validate_order(domain); !order || domain.q == 0) {
        return order;
    }
    for (const double bound : {domain.lower, domain.upper}) {
        if (std::fabs(bound / domain.q) > kMostMultiples) {
            return refuse(domain, "q is too small beside the bounds; at most 2^53 multiples");
        }
        if (!is_multiple(bound, domain.q)) {
            return refuse(
                domain,
                fmt::format(
                    "{} is not a multiple of q; {} would be",
                    to_argument(Value(bound)),
                    neighbours(bound, domain.q)
                )
            );
        }
    }
    if (domain.log && domain.lower < domain.q / 2) {
        return refuse(domain, "a logarithmic range needs a lower bound of at least q");
    }
    return Ok{};
}

Status validate_one(const IntDomain& domain) {
    if (domain.q < 0) {
        return refuse(domain, "q must be at least 1");
    }
    if (Status order = validate_order(domain); !order || domain.q == 0) {
        return order;
    }
    for (const std::int64_t bound : {domain.lower, domain.upper}) {
        if (bound % domain.q != 0) {
            return refuse(
                domain,
                fmt::format(
                    "{} is not a multiple of q; {} would be", bound, neighbours(bound, domain.q)
                )
            );
        }
    }
    return Ok{};
}

Status validate_one(const NormalDomain& domain) {
    if (!(domain.sd > 0)) {
        return refuse(domain, "the standard deviation must be above 0");
    }
    if (!(domain.q >= 0)) {
        return refuse(domain, "q must be above 0");
    }
    const double farthest = std::fabs(domain.mean) + kFarthest * domain.sd;
    if (!std::isfinite(farthest) || !std::isfinite(domain.q)) {
        return refuse(domain, "mean, standard deviation and q must be finite numbers, below 1e306");
    }
    if (domain.q > 0 && farthest / domain.q > kMostMultiples) {
        return refuse(domain, "q is too small beside mean and standard deviation");
    }
    return Ok{};
}

Status validate_list(const Domain& domain, const std::vector<Value>& values) {
    return values.empty() ? Status(refuse(domain, "the list needs at least one value"))
                          : Status(Ok{});
}

std::optional<double> plain_number(const Value& value) {
    return value.as_bool() != nullptr ? std::nullopt : value.number();
}

Error outside(const Domain& domain, const Value& value, const std::string& wanted) {
    return {
        ErrorCode::InvalidInput,
        fmt::format("{} is not in {}; give {}", to_json(value), to_text(domain), wanted)};
}

Result<Value> listed(
    const Domain& domain,
    const std::vector<Value>& values,
    const Value& value,
    const char* wanted
) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const Value& one) {
        const bool numbers = plain_number(one).has_value() && plain_number(value).has_value();
        return numbers ? plain_number(one) == plain_number(value) : one == value;
    });
    return found != values.end() ? Result<Value>(*found) : outside(domain, value, wanted);
}

Result<Value> value_in_one(const RealDomain& domain, const Value& value) {
    const std::optional<double> number = plain_number(value);
    const bool inside = number && *number >= domain.lower && *number <= domain.upper;
    if (!inside) {
        return outside(
            domain,
            value,
            fmt::format("a number from {} to {}", to_json(domain.lower), to_json(domain.upper))
        );
    }
    if (domain.q > 0 && !is_multiple(*number, domain.q)) {
        return outside(domain, value, "a multiple such as " + neighbours(*number, domain.q));
    }
    return Value(*number);
}

Result<Value> value_in_one(const IntDomain& domain, const Value& value) {
    const std::int64_t* number = value.as_int();
    const std::int64_t last = domain.q > 0 ? domain.upper : domain.upper - 1;
    if (number == nullptr || *number < domain.lower || *number > last) {
        return outside(
            domain, value, fmt::format("a whole number from {} to {}", domain.lower, last)
        );
    }
    if (domain.q > 0 && *number % domain.q != 0) {
        return outside(domain, value, "a multiple such as " + neighbours(*number, domain.q));
    }
    return value;
}

Result<Value> value_in_one(const NormalDomain& domain, const Value& value) {
    const std::optional<double> number = plain_number(value);
    if (!number || !std::isfinite(*number)) {
        return outside(domain, value, "a finite number");
    }
    if (domain.q > 0 && std::fabs(*number / domain.q) > kMostMultiples) {
        return outside(domain, value, "a number nearer to the mean");
    }
    if (domain.q > 0 && !is_multiple(*number, domain.q)) {
        return outside(domain, value, "a multiple such as " + neighbours(*number, domain.q));
    }
    return Value(*number);
}

}  // namespace

std::string to_text(const Domain& domain) {
    return std::visit(
        Overloaded{
            [](const Constant& one) { return to_json(one.value); },
            [](const RealDomain& one) {
                return bounds_text(one.log ? "log" : "", "uniform", one.lower, one.upper, one.q);
            },
            [](const IntDomain& one) {
                return bounds_text(one.log ? "log" : "", "randint", one.lower, one.upper, one.q);
            },
            [](const NormalDomain& one) {
                return bounds_text("", "randn", one.mean, one.sd, one.q);
            },
            [](const Choice& one) { return list_text("choice", one.values); },
            [](const Grid& one) { return list_text("grid", one.values); },
            [](const Expression& one) { return "expr '" + one.text + "'"; },
            [](const SampleFrom&) { return std::string("a function"); },
        },
        domain
    );
}

Status validate(const Domain& domain) {
    return std::visit(
        Overloaded{
            [](const Constant&) { return Status(Ok{}); },
            [](const RealDomain& one) { return validate_one(one); },
            [](const IntDomain& one) { return validate_one(one); },
            [](const NormalDomain& one) { return validate_one(one); },
            [&](const Choice& one) { return validate_list(domain, one.values); },
            [&](const Grid& one) { return validate_list(domain, one.values); },
            [](const Expression&) { return Status(Ok{}); },
            [&](const SampleFrom& one) {
                return one.function ? Status(Ok{}) : Status(refuse(domain, "there is none"));
            },
        },
        domain
    );
}

Result<Value> value_in(const Domain& domain, const Value& value) {
    return std::visit(
        Overloaded{
            [&](const Constant& one) {
                const bool same = listed(domain, {one.value}, value, "").ok();
                return same ? Result<Value>(one.value)
                            : Error{
                                  ErrorCode::InvalidInput,
                                  fmt::format(
                                      "{} is not {}, which it always is",
                                      to_json(value),
                                      to_json(one.value)
                                  )};
            },
            [&](const RealDomain& one) { return value_in_one(one, value); },
            [&](const IntDomain& one) { return value_in_one(one, value); },
            [&](const NormalDomain& one) { return value_in_one(one, value); },
            [&](const Choice& one) { return listed(domain, one.values, value, "one of these"); },
            [&](const Grid& one) { return listed(domain, one.values, value, "one of these"); },
            [&](const Expression&) { return Result<Value>(value); },
            [&](const SampleFrom&) { return Result<Value>(value); },
        },
        domain
    );
}

}  // namespace muster
