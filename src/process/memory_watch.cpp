// SPDX-License-Identifier: Apache-2.0
#include "process/memory_watch.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortest{20};
constexpr milliseconds kLongest{200};
/// What a program may allocate in a millisecond, at the fastest that counts.
constexpr std::int64_t kBytesPerMillisecond = 2'000'000;
/// Looking takes at most one part in so many of a core.
constexpr int kCostShare = 20;

/// The sum of the fields `names` ("RssAnon:") of a /proc file, which gives them in kB.
std::int64_t sum_fields(const std::string& path, std::initializer_list<std::string_view> names) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char buffer[8192];
    const ssize_t got = fd ? ::read(fd.get(), buffer, sizeof buffer) : 0;
    if (got <= 0) {
        return 0;
    }
    const std::string_view text(buffer, static_cast<std::size_t>(got));
    std::int64_t sum = 0;
    for (const std::string_view name : names) {
        const std::size_t found = text.find(name);
        if (found == std::string_view::npos) {
            continue;
        }
        std::string_view rest = text.substr(found + name.size());
        rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
        std::int64_t kilobytes = 0;
        std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
        sum += kilobytes * 1024;
    }
    return sum;
}

std::int64_t at_most(const std::vector<pid_t>& pids) {
    std::int64_t sum = 0;
    for (const pid_t pid : pids) {
        sum += sum_fields(
            fmt::format("/proc/{}/status", pid), {"\nRssAnon:", "\nRssShmem:", "\nVmSwap:"}
        );
    }
    return sum;
}

std::int64_t exactly(const std::vector<pid_t>& pids) {
    std::int64_t sum = 0;
    for (const pid_t pid : pids) {
        sum += sum_fields(
            fmt::format("/proc/{}/smaps_rollup", pid), {"\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:"}
        );
    }
    return sum;
}

}  // namespace

MemoryWatch::MemoryWatch(std::int64_t limit_bytes, Clock::time_point now)
    : limit_bytes_(limit_bytes),
      due_(limit_bytes > 0 ? now + kShortest : Clock::time_point::max()) {}

bool MemoryWatch::look(const std::vector<pid_t>& pids, Clock::time_point now) {
    std::int64_t used = at_most(pids);
    // A single process shares with none of its own.
    if (used > limit_bytes_ && pids.size() > 1) {
        const std::int64_t exact = exactly(pids);
        // Kernels before 5.4 don't tell these apart; the upper bound has to do there.
        used = exact > 0 ? exact : used;
    }
    peak_bytes_ = std::max(peak_bytes_, used);
    if (used > limit_bytes_) {
        due_ = Clock::time_point::max();
        return true;
    }
    const milliseconds by_room((limit_bytes_ - used) / kBytesPerMillisecond);
    const auto by_cost = (Clock::now() - now) * kCostShare;
    due_ = now + std::max<Clock::duration>(std::clamp(by_room, kShortest, kLongest), by_cost);
    return false;
}

}  // namespace muster
