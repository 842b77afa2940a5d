// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace muster {

std::size_t utf8_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t index) {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
    };
    const auto continues = [&](std::size_t index) { return (byte(index) & 0xC0U) == 0x80U; };
    const unsigned first = byte(at);
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        return continues(at + 1) ? 2 : 0;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        const unsigned second = byte(at + 1);
        const bool in_range = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0);
        return continues(at + 1) && continues(at + 2) && in_range ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const unsigned second = byte(at + 1);
        const bool in_range = (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
        return continues(at + 1) && continues(at + 2) && continues(at + 3) && in_range ? 4 : 0;
    }
    return 0;
}

std::optional<std::size_t> find_not_utf8(std::string_view text) {
    constexpr std::uint64_t kHighBits = 0x8080808080808080U;
    std::size_t at = 0;
    while (at < text.size()) {
        // Eight plain characters at a time: nearly all text is nothing else.
        std::uint64_t word = kHighBits;
        if (text.size() - at >= sizeof word) {
            std::memcpy(&word, text.data() + at, sizeof word);
        }
        if ((word & kHighBits) == 0) {
            at += sizeof word;
            continue;
        }
        const std::size_t length = utf8_length(text, at);
        if (length == 0) {
            return at;
        }
        at += length;
    }
    return std::nullopt;
}

}  // namespace muster
