// SPDX-License-Identifier: Apache-2.0

#include "spec/read_domain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "spec/section.hpp"

namespace muster {
namespace {

enum class Form { Real, Whole, Normal, Values, Grid, Expression, Constant };

struct DomainName {
    std::string_view name;
    Form form;
    bool log = false;
    bool quantised = false;
};

constexpr std::array<DomainName, 14> kDomains{{
    {"uniform", Form::Real},
    {"quniform", Form::Real, false, true},
    {"loguniform", Form::Real, true},
    {"qloguniform", Form::Real, true, true},
    {"randint", Form::Whole},
    {"qrandint", Form::Whole, false, true},
    {"lograndint", Form::Whole, true},
    {"qlograndint", Form::Whole, true, true},
    {"randn", Form::Normal},
    {"qrandn", Form::Normal, false, true},
    {"choice", Form::Values},
    {"grid", Form::Grid},
    {"expr", Form::Expression},
    {"constant", Form::Constant},
}};

/// What the arguments of one domain are read with.
struct Reading {
    const DomainName& domain;
    const YamlNode& arguments;
    std::string_view path;
    Problems& problems;

    void problem(const YamlNode& node, std::string_view message) const {
        problems.add(node.place, path, message);
    }
};

std::string usage(const DomainName& domain) {
    const std::string_view first = domain.form == Form::Normal ? "mean, sd" : "lower, upper";
    return fmt::format("{}: [{}{}]", domain.name, first, domain.quantised ? ", q" : "");
}

/// The arguments, when they are a list of as many as the domain takes.
const std::vector<YamlNode>* arguments_of(const Reading& reading) {
    const std::size_t wanted = reading.domain.quantised ? 3 : 2;
    const YamlNode& list = reading.arguments;
    if (list.is_list() && list.items.size() == wanted) {
        return &list.items;
    }
    const std::string found =
        list.is_list() ? fmt::format("a list of {}", list.items.size()) : describe(list);
    reading.problem(list, fmt::format("expected {}, found {}", usage(reading.domain), found));
    return nullptr;
}

std::optional<double> real_of(const Reading& reading, const YamlNode& node) {
    const Value value = to_value(node);
    const std::optional<double> number = value.as_bool() == nullptr ? value.number() : std::nullopt;
    if (!number || !std::isfinite(*number)) {
        reading.problem(node, expected("a finite number", node));
        return std::nullopt;
    }
    return number;
}

std::optional<std::int64_t> whole_of(const Reading& reading, const YamlNode& node) {
    const Value value = to_value(node);
    if (const std::int64_t* whole = value.as_int()) {
        return *whole;
    }
    // 1e6 is real to YAML and whole to people.
    constexpr double kExact = 9007199254740992.0;
    const double* real = value.as_real();
    if (real != nullptr && std::abs(*real) <= kExact && std::trunc(*real) == *real) {
        return static_cast<std::int64_t>(*real);
    }
    reading.problem(node, expected("a whole number", node));
    return std::nullopt;
}

template <class Number>
bool q_is_positive(const Reading& reading, const YamlNode& node, Number q) {
    if (q > 0) {
        return true;
    }
    reading.problem(node, fmt::format("q is {}; it must be above 0", node.text));
    return false;
}

std::optional<Domain> read_reals(const Reading& reading) {
    const std::vector<YamlNode>* nodes = arguments_of(reading);
    if (nodes == nullptr) {
        return std::nullopt;
    }
    std::vector<double> numbers;
    for (const YamlNode& node : *nodes) {
        if (const std::optional<double> number = real_of(reading, node)) {
            numbers.push_back(*number);
        }
    }
    if (numbers.size() != nodes->size() ||
        (reading.domain.quantised && !q_is_positive(reading, nodes->at(2), numbers.at(2)))) {
        return std::nullopt;
    }
    const double q = reading.domain.quantised ? numbers[2] : 0;
    if (reading.domain.form == Form::Normal) {
        return NormalDomain{numbers[0], numbers[1], q};
    }
    return RealDomain{numbers[0], numbers[1], q, reading.domain.log};
}

std::optional<Domain> read_wholes(const Reading& reading) {
    const std::vector<YamlNode>* nodes = arguments_of(reading);
    if (nodes == nullptr) {
        return std::nullopt;
    }
    std::vector<std::int64_t> numbers;
    for (const YamlNode& node : *nodes) {
        if (const std::optional<std::int64_t> number = whole_of(reading, node)) {
            numbers.push_back(*number);
        }
    }
    if (numbers.size() != nodes->size() ||
        (reading.domain.quantised && !q_is_positive(reading, nodes->at(2), numbers.at(2)))) {
        return std::nullopt;
    }
    const std::int64_t q = reading.domain.quantised ? numbers[2] : 0;
    return IntDomain{numbers[0], numbers[1], q, reading.domain.log};
}

std::optional<Domain> read_values(const Reading& reading) {
    if (!reading.arguments.is_list()) {
        reading.problem(
            reading.arguments,
            fmt::format(
                "expected {}: [value, value, …], found {}",
                reading.domain.name,
                describe(reading.arguments)
            )
        );
        return std::nullopt;
    }
    std::vector<Value> values;
    for (const YamlNode& item : reading.arguments.items) {
        values.push_back(to_value(item));
    }
    if (reading.domain.form == Form::Grid) {
        return Grid{std::move(values)};
    }
    return Choice{std::move(values)};
}

std::optional<Domain> read_expression(const Reading& reading) {
    if (!reading.arguments.is_scalar()) {
        reading.problem(
            reading.arguments, expected("a formula such as \"lr * 10\"", reading.arguments)
        );
        return std::nullopt;
    }
    return Expression{reading.arguments.text};
}

const DomainName* find_domain(std::string_view name) {
    const auto* const found =
        std::find_if(kDomains.begin(), kDomains.end(), [&](const DomainName& domain) {
            return domain.name == name;
        });
    return found == kDomains.end() ? nullptr : found;
}

}  // namespace

const std::vector<std::string>& domain_names() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> names;
        names.reserve(kDomains.size());
        for (const DomainName& domain : kDomains) {
            names.emplace_back(domain.name);
        }
        return names;
    }();
    return all;
}

bool is_domain_name(std::string_view name) {
    return find_domain(name) != nullptr;
}

std::optional<Domain> read_domain(
    std::string_view name,
    const YamlNode& arguments,
    std::string_view path,
    Problems& problems
) {
    const DomainName* domain = find_domain(name);
    if (domain == nullptr) {
        return std::nullopt;
    }
    const Reading reading{*domain, arguments, path, problems};
    switch (domain->form) {
        case Form::Real:
        case Form::Normal:
            return read_reals(reading);
        case Form::Whole:
            return read_wholes(reading);
        case Form::Values:
        case Form::Grid:
            return read_values(reading);
        case Form::Expression:
            return read_expression(reading);
        case Form::Constant:
            return Constant{to_value(arguments)};
    }
    return std::nullopt;
}

}  // namespace muster
