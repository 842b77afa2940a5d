// SPDX-License-Identifier: Apache-2.0

#include "base/random.hpp"

#include <bit>
#include <cmath>

#include "base/check.hpp"

namespace muster {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
        word = splitmix64(seed);
    }
}

RandomStream RandomStream::derive(std::uint64_t seed, std::string_view name, std::uint64_t index) {
    // FNV-1a over the name, then splitmix64 over seed and index, so that near inputs end far apart.
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char letter : name) {
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
    }
    std::uint64_t state = seed ^ hash;
    const std::uint64_t mixed = splitmix64(state);
    state = mixed ^ index;
    return RandomStream(splitmix64(state));
}

std::uint64_t RandomStream::operator()() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

double RandomStream::uniform() {
    return static_cast<double>((*this)() >> 11U) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
    check(bound > 0, "a random number is drawn below something above 0");
    // Values in the last, incomplete multiple of bound would favour small results: draw again.
    const std::uint64_t threshold = (0 - bound) % bound;
    std::uint64_t drawn = (*this)();
    while (drawn < threshold) {
        drawn = (*this)();
    }
    return drawn % bound;
}

double RandomStream::normal() {
    while (true) {
        const double left = 2 * uniform() - 1;
        const double right = 2 * uniform() - 1;
        const double square = left * left + right * right;
        if (square > 0 && square < 1) {
            return left * std::sqrt(-2 * std::log(square) / square);
        }
    }
}

}  // namespace muster
