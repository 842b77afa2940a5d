// SPDX-License-Identifier: Apache-2.0
//
// core_set - a set of a node's cores, by their place in its inventory.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

/// All sets that are combined with each other are made for the same number of cores.
class CoreSet {
  public:
    CoreSet() = default;
    explicit CoreSet(std::size_t cores) : words_((cores + 63) / 64) {}

    void insert(std::uint32_t core) { words_[core / 64] |= bit(core); }
    void erase(std::uint32_t core) { words_[core / 64] &= ~bit(core); }
    bool contains(std::uint32_t core) const { return (words_[core / 64] & bit(core)) != 0; }

    std::size_t size() const {
        std::size_t count = 0;
        for (const std::uint64_t word : words_) {
            count += static_cast<std::size_t>(std::popcount(word));
        }
        return count;
    }
    bool empty() const { return size() == 0; }

    /// Ascending.
    std::vector<std::uint32_t> list() const {
        std::vector<std::uint32_t> cores;
        cores.reserve(size());
        for (std::size_t i = 0; i < words_.size(); ++i) {
            for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
                cores.push_back(
                    static_cast<std::uint32_t>(i * 64) +
                    static_cast<std::uint32_t>(std::countr_zero(rest))
                );
            }
        }
        return cores;
    }

    CoreSet& operator&=(const CoreSet& other) {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            words_[i] &= other.words_[i];
        }
        return *this;
    }
    CoreSet& operator-=(const CoreSet& other) {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            words_[i] &= ~other.words_[i];
        }
        return *this;
    }
    friend CoreSet operator&(CoreSet left, const CoreSet& right) { return left &= right; }
    friend CoreSet operator-(CoreSet left, const CoreSet& right) { return left -= right; }
    friend bool operator==(const CoreSet&, const CoreSet&) = default;

  private:
    static std::uint64_t bit(std::uint32_t core) { return std::uint64_t{1} << (core % 64); }

    std::vector<std::uint64_t> words_;
};

}  // namespace muster
