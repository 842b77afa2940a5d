// SPDX-License-Identifier: Apache-2.0
//
// core_set - a set of a node's cores, by their place in its inventory.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

/// All sets that are combined with each other are made for the same number of cores.
class CoreSet {
  public:
    CoreSet() = default;
    explicit CoreSet(std::size_t cores) : size_((cores + 63) / 64) {
        if (size_ > kFew) {
            many_.resize(size_);
        }
    }

    void insert(std::uint32_t core) { words()[core / 64] |= bit(core); }
    void erase(std::uint32_t core) { words()[core / 64] &= ~bit(core); }
    bool contains(std::uint32_t core) const { return (words()[core / 64] & bit(core)) != 0; }

    std::size_t size() const {
        std::size_t count = 0;
        for (const std::uint64_t word : words()) {
            count += static_cast<std::size_t>(std::popcount(word));
        }
        return count;
    }
    bool empty() const { return !next(0).has_value(); }

    /// The first core at or after `from`.
    std::optional<std::uint32_t> next(std::uint32_t from) const {
        const std::span<const std::uint64_t> all = words();
        std::size_t at = from / 64;
        std::uint64_t rest = at < all.size() ? all[at] & ~(bit(from) - 1) : 0;
        while (rest == 0 && at + 1 < all.size()) {
            rest = all[++at];
        }
        if (rest == 0) {
            return std::nullopt;
        }
        return static_cast<std::uint32_t>(at * 64) +
               static_cast<std::uint32_t>(std::countr_zero(rest));
    }

    /// Ascending.
    std::vector<std::uint32_t> list() const {
        std::vector<std::uint32_t> cores;
        cores.reserve(size());
        for (auto core = next(0); core; core = next(*core + 1)) {
            cores.push_back(*core);
        }
        return cores;
    }

    CoreSet& operator&=(const CoreSet& other) {
        const std::span<const std::uint64_t> others = other.words();
        std::size_t at = 0;
        for (std::uint64_t& word : words()) {
            word &= others[at++];
        }
        return *this;
    }
    CoreSet& operator-=(const CoreSet& other) {
        const std::span<const std::uint64_t> others = other.words();
        std::size_t at = 0;
        for (std::uint64_t& word : words()) {
            word &= ~others[at++];
        }
        return *this;
    }
    friend CoreSet operator&(CoreSet left, const CoreSet& right) { return left &= right; }
    friend CoreSet operator-(CoreSet left, const CoreSet& right) { return left -= right; }
    friend bool operator==(const CoreSet&, const CoreSet&) = default;

  private:
    // Sets of 256 cores and fewer take no memory of their own: many are made for each placement.
    static constexpr std::size_t kFew = 4;

    static std::uint64_t bit(std::uint32_t core) { return std::uint64_t{1} << (core % 64); }

    std::span<std::uint64_t> words() { return {size_ > kFew ? many_.data() : few_.data(), size_}; }
    std::span<const std::uint64_t> words() const {
        return {size_ > kFew ? many_.data() : few_.data(), size_};
    }

    // In words of 64 cores.
    std::size_t size_ = 0;
    std::array<std::uint64_t, kFew> few_{};
    std::vector<std::uint64_t> many_;
};

}  // namespace muster
