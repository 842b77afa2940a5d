// SPDX-License-Identifier: Apache-2.0
//
// resources - amounts, requests and placement groups: what a trial asks for.

#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

namespace muster {

/// An amount of a resource, exact to 1/10000: 0.1 + 0.2 is 0.3, and 0.3333 fits three times in 1.
class Amount {
  public:
    constexpr Amount() = default;

    static constexpr Amount whole(std::int64_t count) { return Amount(count * kScale); }
    static constexpr Amount ten_thousandths(std::int64_t count) { return Amount(count); }

    /// Rounds to the nearest 1/10000.
    /// Errors: InvalidInput for negative, NaN, infinite or above 9e14, and for more than four
    /// decimals (further than 1e-6 of 1/10000 from a multiple); the message gives the value only,
    /// the caller adds the key.
    static Result<Amount> from_real(double value);

    constexpr std::int64_t ten_thousandths() const { return count_; }
    constexpr bool is_zero() const { return count_ == 0; }
    constexpr bool is_whole() const { return count_ % kScale == 0; }
    /// The next whole number at or above.
    constexpr std::int64_t ceil() const { return (count_ + kScale - 1) / kScale; }
    constexpr std::int64_t floor() const { return count_ / kScale; }
    double real() const { return static_cast<double>(count_) / kScale; }

    friend constexpr auto operator<=>(const Amount&, const Amount&) = default;
    friend constexpr Amount operator+(Amount left, Amount right) {
        return Amount(left.count_ + right.count_);
    }
    friend constexpr Amount operator-(Amount left, Amount right) {
        return Amount(left.count_ - right.count_);
    }
    constexpr Amount& operator+=(Amount other) { return *this = *this + other; }
    constexpr Amount& operator-=(Amount other) { return *this = *this - other; }

  private:
    static constexpr std::int64_t kScale = 10'000;
    constexpr explicit Amount(std::int64_t count) : count_(count) {}

    std::int64_t count_ = 0;
};

/// "2", "0.5", "0.3333".
std::string to_string(Amount amount);

/// So much of a custom resource.
struct NamedAmount {
    std::string name;
    Amount amount;

    friend bool operator==(const NamedAmount&, const NamedAmount&) = default;
    friend auto operator<=>(const NamedAmount&, const NamedAmount&) = default;
};

/// Whether a custom resource may be called so: [A-Za-z][A-Za-z0-9_/]*, and not cpu, gpu or memory.
bool is_custom_resource_name(std::string_view name);

/// CPUs, GPUs, memory and custom resources, wanted or had. `custom` is sorted by name and holds no
/// zero amounts.
struct ResourceSet {
    Amount cpu;
    Amount gpu;
    std::int64_t memory_bytes = 0;
    std::vector<NamedAmount> custom;

    bool is_zero() const;
    /// The amount of a custom resource, 0 when it is not there.
    Amount custom_amount(std::string_view name) const;
    /// Sets a custom resource, keeping the order; 0 removes it.
    void set_custom(std::string_view name, Amount amount);

    friend bool operator==(const ResourceSet&, const ResourceSet&) = default;
};

/// "{cpu: 2, gpu: 0.5, memory: 2GiB, licence: 1}"; "{}" when all is zero.
std::string to_string(const ResourceSet& resources);

/// "2GiB", "500MB", "1536": the largest unit that gives a whole or short number.
std::string format_bytes(std::int64_t bytes);

/// Reads "2GiB", "500MB", "1.5 GiB", "4096" (bytes), "10PB"; kB, MB, … are powers of 1000.
/// Errors: InvalidInput, naming the text and the units.
Result<std::int64_t> parse_bytes(std::string_view text);

/// What must sit on one node.
using Bundle = ResourceSet;

enum class PlacementStrategy {
    /// As few nodes as possible; soft.
    Pack,
    /// A fresh node for each bundle while there are any; soft.
    Spread,
    /// All on one node, else infeasible.
    StrictPack,
    /// Every bundle on a node of its own; more bundles than nodes: infeasible.
    StrictSpread,
};

/// "PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD".
std::string_view to_string(PlacementStrategy strategy);

/// Bundles placed together or not at all. Bundle 0 is the trial's own process; when it is empty the
/// process starts where bundle 1 is.
struct PlacementGroupSpec {
    std::vector<Bundle> bundles{Bundle{.cpu = Amount::whole(1)}};
    PlacementStrategy strategy = PlacementStrategy::Pack;

    friend bool operator==(const PlacementGroupSpec&, const PlacementGroupSpec&) = default;
};

/// "{cpu: 1}" for one bundle, "[{cpu: 1}, {cpu: 4, gpu: 1}] PACK" for several.
std::string to_string(const PlacementGroupSpec& group);

/// Refuses what no cluster could mean: a gpu of 1 or more that is not whole, no bundle, an empty
/// first bundle and no other, an empty bundle elsewhere. One bundle of zeros is allowed.
/// Errors: InvalidInput, naming the bundle, the key and the value.
Status validate(const PlacementGroupSpec& group);

}  // namespace muster
