// SPDX-License-Identifier: Apache-2.0

#include "launch/stderr_filter.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace muster {
namespace {

/// Lines that say nothing which muster does not say better.
constexpr std::array<std::string_view, 4> kNoise = {
    "PMIX ERROR: BAD-PARAM in file",
    "ORTE_ERROR_LOG: Data unpack",
    "more process has sent help message help-mpi-btl-tcp.txt",
    "more processes have sent help message help-mpi-btl-tcp.txt",
};
/// The same for blocks.
constexpr std::array<std::string_view, 4> kNoisyBlocks = {
    "WARNING: Open MPI failed to TCP connect to a peer MPI process",
    "An MPI communication peer process has unexpectedly disconnected",
    "ORTE has lost communication with a remote daemon",
    "Open MPI detected an inbound MPI TCP connection request",
};
constexpr std::size_t kLongestBlock = 60;
constexpr std::size_t kLongestLine = 65'536;

bool is_rule(std::string_view line) {
    return line.size() >= 60 && line.find_first_not_of('-') == std::string_view::npos;
}

template <std::size_t kCount>
bool holds_any(std::string_view text, const std::array<std::string_view, kCount>& phrases) {
    return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
        return text.find(phrase) != std::string_view::npos;
    });
}

}  // namespace

std::string StderrFilter::take(std::string_view bytes) {
    std::string shown;
    line_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end = line_.find('\n'); end != std::string::npos;
         end = line_.find('\n', begin)) {
        take_line(std::string_view(line_).substr(begin, end - begin), shown);
        begin = end + 1;
    }
    line_.erase(0, begin);
    if (line_.size() > kLongestLine) {
        shown += flush();
    }
    return shown;
}

void StderrFilter::take_line(std::string_view line, std::string& shown) {
    if (const std::optional<Announcement> said = announcement_of(line, token_)) {
        has_begun_ = true;
        exit_code_ = said->exit_code ? said->exit_code : exit_code_;
        return;
    }
    if (!block_.empty()) {
        block_.emplace_back(line);
        if (is_rule(line) || block_.size() > kLongestBlock) {
            end_block(shown);
        }
    } else if (is_rule(line)) {
        block_.emplace_back(line);
    } else if (!holds_any(line, kNoise)) {
        shown.append(line).append("\n");
    }
}

void StderrFilter::end_block(std::string& shown) {
    std::string text;
    for (const std::string& line : std::exchange(block_, {})) {
        text += line + "\n";
    }
    if (!holds_any(text, kNoisyBlocks)) {
        shown += text;
    }
}

std::string StderrFilter::flush() {
    std::string shown;
    end_block(shown);
    return shown + std::exchange(line_, {});
}

}  // namespace muster
