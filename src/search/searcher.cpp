// SPDX-License-Identifier: Apache-2.0

#include "search/searcher.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/overloaded.hpp"
#include "search/domain.hpp"
#include "search/grid_cross.hpp"
#include "search/resolved_space.hpp"
#include "search/sample.hpp"
#include "search/search_space_check.hpp"

namespace muster {
namespace {

// A trial's id has 32 bits.
constexpr std::uint64_t kMostTrials = std::numeric_limits<std::uint32_t>::max();
// Points of conditional grids that are looked at when an experiment begins: well below a second.
constexpr std::uint64_t kMostConditionalCells = 4'000'000;

using Values = std::vector<std::optional<Value>>;

/// Some of the configs: those of one point, or all that follow the points.
struct Block {
    std::uint64_t first = 0;
    FixedValues fixed;
    GridCross cross;
};

Error too_many_trials() {
    return {
        ErrorCode::InvalidInput,
        fmt::format("there would be more than {} trials; lower num_samples", kMostTrials)};
}

}  // namespace

struct BasicSearcher::Plan {
    SearchSpace space;
    ResolvedSpace resolved;
    std::shared_ptr<const ConfigSchema> schema;
    /// For each SampleFrom, the keys that it sees.
    std::vector<std::shared_ptr<const ConfigSchema>> seen;
    /// The points, then what follows them.
    std::vector<Block> blocks;
    std::optional<std::uint64_t> total;
    std::uint64_t seed = 0;

    Status add_blocks(const SearchOptions& options, std::int64_t num_samples);
    FixedValues fixed_by(const std::vector<ValueMember>& point) const;
    const Block& block_of(std::uint64_t index) const;
    bool has_value(std::size_t place, const Values& values) const;
    Result<Value>
    value(std::size_t place, const Block& block, std::uint64_t index, const Values& values) const;
    Result<Value> evaluate(std::size_t place, const Values& values) const;
    Result<Value> call(std::size_t place, const SampleFrom& domain, const Values& values) const;
};

FixedValues BasicSearcher::Plan::fixed_by(const std::vector<ValueMember>& point) const {
    FixedValues fixed(space.parameters.size());
    for (const ValueMember& member : point) {
        const std::optional<std::size_t> place = schema->index_of(member.key);
        check(place.has_value(), "a validated point names keys of the space alone");
        fixed[*place] = *value_in(space.parameters[*place].domain, member.value);
    }
    return fixed;
}

Status BasicSearcher::Plan::add_blocks(const SearchOptions& options, std::int64_t num_samples) {
    std::uint64_t budget = kMostConditionalCells;
    std::uint64_t first = 0;
    for (const std::vector<ValueMember>& point : options.points) {
        FixedValues fixed = fixed_by(point);
        Result<GridCross> cross = GridCross::make(space, resolved, fixed, budget);
        if (!cross) {
            return cross.error();
        }
        blocks.push_back({first, std::move(fixed), *std::move(cross)});
        first += blocks.back().cross.count();
        if (first > kMostTrials) {
            return too_many_trials();
        }
    }
    FixedValues nothing(space.parameters.size());
    Result<GridCross> cross = GridCross::make(space, resolved, nothing, budget);
    if (!cross) {
        return cross.error();
    }
    blocks.push_back({first, std::move(nothing), *std::move(cross)});
    if (num_samples == -1) {
        return Ok{};
    }
    const std::uint64_t samples = static_cast<std::uint64_t>(num_samples);
    const std::uint64_t points = options.points.size();
    const std::uint64_t repeated = samples > points ? samples - points : 0;
    if (repeated > (kMostTrials - first) / blocks.back().cross.count()) {
        return too_many_trials();
    }
    total = first + repeated * blocks.back().cross.count();
    return Ok{};
}

const Block& BasicSearcher::Plan::block_of(std::uint64_t index) const {
    const auto next = std::upper_bound(
        blocks.begin(),
        blocks.end(),
        index,
        [](std::uint64_t wanted, const Block& block) { return wanted < block.first; }
    );
    return *(next - 1);
}

bool BasicSearcher::Plan::has_value(std::size_t place, const Values& values) const {
    const std::vector<std::size_t>& keys = resolved.parameters[place].condition_keys;
    const Conditions& when = space.parameters[place].when;
    for (std::size_t at = 0; at < keys.size(); ++at) {
        const std::optional<Value>& value = values[keys[at]];
        if (!value || !meets(when[at], *value)) {
            return false;
        }
    }
    return true;
}

Result<Value> BasicSearcher::Plan::evaluate(std::size_t place, const Values& values) const {
    const ResolvedParameter& parameter = resolved.parameters[place];
    std::vector<const Value*> inputs;
    inputs.reserve(parameter.inputs.size());
    for (const std::size_t input : parameter.inputs) {
        inputs.push_back(values[input] ? &*values[input] : nullptr);
    }
    return parameter.formula->evaluate(inputs);
}

Result<Value>
BasicSearcher::Plan::call(std::size_t place, const SampleFrom& domain, const Values& values) const {
    Values inputs;
    for (const std::size_t input : resolved.parameters[place].inputs) {
        inputs.push_back(values[input]);
    }
    // The function is the user's: what it throws must not pass through the core.
    try {
        return domain.function(Config(seen[place], std::move(inputs)));
    } catch (const std::exception& thrown) {
        return Error{ErrorCode::InvalidInput, fmt::format("its function threw: {}", thrown.what())};
    } catch (...) {
        return Error{ErrorCode::InvalidInput, "its function threw something unknown"};
    }
}

Result<Value> BasicSearcher::Plan::value(
    std::size_t place,
    const Block& block,
    std::uint64_t index,
    const Values& values
) const {
    if (block.fixed[place]) {
        return *block.fixed[place];
    }
    const Parameter& parameter = space.parameters[place];
    const auto draw = [&](const auto& domain) {
        RandomStream random = stream_for(seed, index, parameter.key);
        return Result<Value>(Value(sample(domain, random)));
    };
    return std::visit(
        Overloaded{
            [](const Constant& domain) { return Result<Value>(domain.value); },
            [&](const RealDomain& domain) { return draw(domain); },
            [&](const IntDomain& domain) { return draw(domain); },
            [&](const NormalDomain& domain) { return draw(domain); },
            [&](const Choice& domain) { return draw(domain); },
            [&](const Grid& domain) {
                const std::uint64_t point = (index - block.first) % block.cross.count();
                return Result<Value>(domain.values[block.cross.choice(place, point)]);
            },
            [&](const Expression&) { return evaluate(place, values); },
            [&](const SampleFrom& domain) { return call(place, domain, values); },
        },
        parameter.domain
    );
}

BasicSearcher::BasicSearcher(std::unique_ptr<const Plan> plan) : plan_(std::move(plan)) {}
BasicSearcher::~BasicSearcher() = default;
BasicSearcher::BasicSearcher(BasicSearcher&&) noexcept = default;
BasicSearcher& BasicSearcher::operator=(BasicSearcher&&) noexcept = default;

Result<BasicSearcher> BasicSearcher::make(
    SearchSpace space,
    const SearchOptions& options,
    std::int64_t num_samples,
    std::uint64_t seed
) {
    if (num_samples < 1 && num_samples != -1) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "num_samples is {}; it must be at least 1, or -1 for endless", num_samples
            )};
    }
    if (const Status valid = validate(space, options); !valid) {
        return valid.error();
    }
    auto plan = std::make_unique<Plan>();
    plan->seed = seed;
    plan->space = options.algorithm == SearchAlgorithm::Grid ? choices_as_grids(std::move(space))
                                                             : std::move(space);
    Result<ResolvedSpace> resolved = resolve(plan->space);
    if (!resolved) {
        return resolved.error();
    }
    plan->resolved = *std::move(resolved);
    auto schema = std::make_shared<ConfigSchema>();
    for (const Parameter& parameter : plan->space.parameters) {
        schema->keys.push_back(parameter.key);
        const auto* function = std::get_if<SampleFrom>(&parameter.domain);
        plan->seen.push_back(
            function == nullptr
                ? nullptr
                : std::make_shared<const ConfigSchema>(ConfigSchema{function->depends_on})
        );
    }
    plan->schema = std::move(schema);
    if (const Status added = plan->add_blocks(options, num_samples); !added) {
        return added.error();
    }
    return BasicSearcher(std::move(plan));
}

Result<Config> BasicSearcher::config_at(std::uint64_t index) const {
    check(!plan_->total || index < *plan_->total, "a config is asked for that exists");
    const Block& block = plan_->block_of(index);
    Values values(plan_->space.parameters.size());
    for (const std::size_t place : plan_->resolved.order) {
        if (!plan_->has_value(place, values)) {
            continue;
        }
        Result<Value> value = plan_->value(place, block, index, values);
        if (!value) {
            return Error{
                value.error().code,
                fmt::format(
                    "{}: {} (config {})",
                    plan_->space.parameters[place].key,
                    value.error().message,
                    index
                )};
        }
        values[place] = *std::move(value);
    }
    return Config(plan_->schema, std::move(values));
}

Result<Suggestion> BasicSearcher::suggest(std::uint32_t count) {
    Suggestion suggestion;
    while (suggestion.configs.size() < count && next_ != plan_->total) {
        Result<Config> config = config_at(next_);
        if (!config) {
            return suggestion.configs.empty() ? Result<Suggestion>(config.error())
                                              : Result<Suggestion>(std::move(suggestion));
        }
        suggestion.configs.push_back(*std::move(config));
        ++next_;
    }
    suggestion.exhausted = next_ == plan_->total;
    return suggestion;
}

std::optional<std::uint64_t> BasicSearcher::total_trials() const {
    return plan_->total;
}

void BasicSearcher::skip(std::uint64_t count) {
    const std::uint64_t most = plan_->total.value_or(std::numeric_limits<std::uint64_t>::max());
    next_ += std::min(count, most - next_);
}

const std::shared_ptr<const ConfigSchema>& BasicSearcher::schema() const {
    return plan_->schema;
}

}  // namespace muster
