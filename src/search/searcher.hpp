// SPDX-License-Identifier: Apache-2.0
//
// searcher - proposes configs: the given points first, then the whole grid again and again with
// everything else drawn at random.
//
// Config number i is a function of (space, options, seed, i) alone: what was asked before, how many
// trials run at once and how they end change nothing, and continuing is a matter of counting.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/config.hpp"
#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/search_space.hpp"

namespace muster {

/// At most as many configs as were asked for. `exhausted`: there will never be another.
struct Suggestion {
    std::vector<Config> configs;
    bool exhausted = false;

    friend bool operator==(const Suggestion&, const Suggestion&) = default;
};

/// The searcher of `algorithm: random` and `algorithm: grid`.
///
/// With `random`, every Grid of the space is crossed (the first key varies fastest) and the whole
/// grid is repeated `num_samples` times. Each point takes the place of one repetition: keys that it
/// names are fixed, other grids are still crossed, the rest is drawn. Points beyond `num_samples`
/// are tried all the same. With `grid`, a Choice counts as a Grid.
///
/// A Grid with a `when` is crossed only where the condition holds, so that no config comes twice
/// for a key that it does not have.
class BasicSearcher {
  public:
    /// `num_samples` is at least 1, or -1 for endless.
    /// Errors: InvalidInput, from validate(), and when there would be more than 2^32 - 1 trials.
    static Result<BasicSearcher> make(
        SearchSpace space,
        const SearchOptions& options,
        std::int64_t num_samples,
        std::uint64_t seed
    );
    ~BasicSearcher();
    BasicSearcher(BasicSearcher&&) noexcept;
    BasicSearcher& operator=(BasicSearcher&&) noexcept;
    BasicSearcher(const BasicSearcher&) = delete;
    BasicSearcher& operator=(const BasicSearcher&) = delete;

    /// The next configs, up to `count`.
    /// Errors: InvalidInput when the next config has a formula without a value, naming key and
    /// trial; then every later call gives the same error. Configs before it are given out first.
    Result<Suggestion> suggest(std::uint32_t count);

    /// How many configs there are in all; nothing when they are endless.
    std::optional<std::uint64_t> total_trials() const;

    /// Leaves out the next `count` configs: those that an earlier run was given. O(1).
    void skip(std::uint64_t count);

    /// Config number `index`, from 0.
    /// REQUIRES: index < total_trials().
    /// Errors: as suggest().
    Result<Config> config_at(std::uint64_t index) const;

    /// Shared by all configs.
    const std::shared_ptr<const ConfigSchema>& schema() const;

  private:
    struct Plan;
    explicit BasicSearcher(std::unique_ptr<const Plan> plan);

    std::unique_ptr<const Plan> plan_;
    std::uint64_t next_ = 0;
};

}  // namespace muster
