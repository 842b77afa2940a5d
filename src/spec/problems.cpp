// SPDX-License-Identifier: Apache-2.0

#include "spec/problems.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace muster {
namespace {

constexpr std::size_t kMostTold = 10;
// A hostile file can hold a problem a byte.
constexpr std::size_t kMostKept = 1000;
constexpr std::size_t kLongestSet = 80;

/// The beginning of a --set as one line of text, whatever its bytes are.
std::string shown(std::string_view set) {
    std::string text;
    std::size_t at = 0;
    while (at < set.size() && text.size() < kLongestSet) {
        const std::size_t length = utf8_length(set, at);
        const bool is_control = static_cast<unsigned char>(set[at]) < 0x20 || set[at] == 0x7F;
        text += length == 0 || is_control ? "\uFFFD" : set.substr(at, length);
        at += std::max(length, std::size_t{1});
    }
    return at < set.size() ? text + "…" : text;
}

}  // namespace

Problems::Problems(std::string file, std::vector<std::string> sets)
    : file_(std::move(file)),
      sets_(std::move(sets)) {}

void Problems::add(Place place, std::string_view path, std::string_view message) {
    all_later_ = false;
    if (problems_.size() < kMostKept) {
        problems_.push_back({place, fmt::format("{}{}{}", path, path.empty() ? "" : ": ", message)}
        );
    }
}

void Problems::add_later(Place place, std::string_view path, std::string_view what) {
    const bool all_later = all_later_;
    add(place, path, fmt::format("{} is not in this version", what));
    all_later_ = all_later;
}

std::string Problems::where(Place place) const {
    if (place.set == 0) {
        return fmt::format("{}:{}:{}", file_, place.line, place.column);
    }
    return "--set " + shown(sets_[place.set - 1]);
}

Error Problems::error() const {
    check(!empty(), "an error is made of at least one problem");
    std::vector<Problem> sorted = problems_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& left, const Problem& right) {
        return std::tie(left.place.set, left.place.line, left.place.column) <
               std::tie(right.place.set, right.place.line, right.place.column);
    });
    std::string message;
    for (std::size_t index = 0; index < std::min(sorted.size(), kMostTold); ++index) {
        message += index == 0 ? "" : "\n";
        message += where(sorted[index].place) + ": " + sorted[index].text;
    }
    if (sorted.size() > kMostTold) {
        message += fmt::format("\n… and {} more", sorted.size() - kMostTold);
    }
    return {all_later_ ? ErrorCode::NotSupported : ErrorCode::InvalidInput, message};
}

}  // namespace muster
