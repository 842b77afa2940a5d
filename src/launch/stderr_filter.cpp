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
constexpr std::size_t kLongestAnnouncement = 80;

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
        const std::string_view line = std::string_view(line_).substr(begin, end - begin);
        // Behind what another rank wrote, perhaps, whose line goes on after it.
        const std::size_t mark = line.rfind(kAnnouncement);
        if (mark != std::string_view::npos && take_announcement(line.substr(mark))) {
            line_.erase(begin + mark, line.size() - mark + 1);
        } else {
            take_line(line, shown);
            begin = end + 1;
        }
    }
    line_.erase(0, begin);
    if (line_.size() > kLongestLine) {
        shown += flush();
    }
    return shown;
}

bool StderrFilter::take_announcement(std::string_view line) {
    const std::optional<Announcement> said = announcement_of(line, token_);
    if (!said) {
        return false;
    }
    has_begun_ = true;
    if (said->kind == Announcement::Kind::End) {
        exit_code_ = static_cast<int>(said->value);
    } else if (said->kind == Announcement::Kind::Alive) {
        patience_ = std::chrono::seconds{said->value};
    }
    return true;
}

void StderrFilter::take_line(std::string_view line, std::string& shown) {
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
    const std::size_t mark = line_.rfind(kAnnouncement);
    // The rest of an announcement comes, or nobody misses it.
    const bool keeps = mark != std::string::npos && line_.size() - mark < kLongestAnnouncement;
    std::string kept = keeps ? line_.substr(mark) : "";
    line_.resize(line_.size() - kept.size());
    return shown + std::exchange(line_, std::move(kept));
}

}  // namespace muster
