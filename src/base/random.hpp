// SPDX-License-Identifier: Apache-2.0
//
// random - seeded streams that give the same numbers on every machine and standard library.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster {

/// xoshiro256** by Blackman and Vigna (2018), seeded by splitmix64. The standard's distributions
/// differ between libraries, so the few that are needed are here.
class RandomStream {
  public:
    using result_type = std::uint64_t;

    explicit RandomStream(std::uint64_t seed);

    /// A stream of its own for one purpose: the same (seed, name, index) gives the same stream,
    /// and different ones are independent for all practical ends.
    static RandomStream derive(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

    static constexpr std::uint64_t min() { return 0; }
    static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

    std::uint64_t operator()();

    /// Uniform in [0, 1), 53 bits.
    double uniform();

    /// Uniform in [0, bound), without bias. REQUIRES: bound > 0.
    std::uint64_t below(std::uint64_t bound);

    /// Standard normal (Marsaglia's polar method; the second value of a pair is not kept).
    double normal();

  private:
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace muster
