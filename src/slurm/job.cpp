// SPDX-License-Identifier: Apache-2.0

#include "slurm/job.hpp"

#include <charconv>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

namespace muster {
namespace {

constexpr std::string_view kBlanks = " \t\n";
constexpr Duration kMinute = std::chrono::minutes{1};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stopped, failed] = std::from_chars(text.data(), end, number);
    return failed == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

/// The value of the word "KEY=value" in what scontrol prints; empty when there is none.
std::string_view value_of(std::string_view text, std::string_view key) {
    for (std::size_t at = text.find(key); at != std::string_view::npos;
         at = text.find(key, at + 1)) {
        const std::size_t end = at + key.size();
        const bool begins = at == 0 || kBlanks.find(text[at - 1]) != std::string_view::npos;
        if (begins && end < text.size() && text[end] == '=') {
            return text.substr(end + 1, text.find_first_of(kBlanks, end) - end - 1);
        }
    }
    return {};
}

/// "2026-12-01T05:00:06" as time since 1970, were it UTC: only the difference of two means
/// anything.
std::optional<Duration> parse_date(std::string_view text) {
    const std::string date(text);
    std::tm when{};
    const char* end = ::strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S", &when);
    return end != nullptr && *end == '\0'
               ? std::optional<Duration>(std::chrono::seconds(::timegm(&when)))
               : std::nullopt;
}

}  // namespace

std::optional<SlurmJob> slurm_job_of(const std::vector<std::string>& environment) {
    SlurmJob job;
    for (const std::string_view entry : environment) {
        const std::size_t equals = entry.find('=');
        if (equals == std::string_view::npos) {
            continue;
        }
        const std::string_view name = entry.substr(0, equals);
        const std::string_view value = entry.substr(equals + 1);
        if (name == "SLURM_JOB_ID" && number_of<std::uint64_t>(value)) {
            job.id = value;
        } else if (name == "SLURM_RESTART_COUNT") {
            job.restarts = number_of<std::uint32_t>(value).value_or(0);
        } else if (name == "SLURM_JOB_START_TIME") {
            job.start_time = number_of<std::int64_t>(value);
        } else if (name == "SLURM_JOB_END_TIME") {
            job.end_time = number_of<std::int64_t>(value);
        }
    }
    return job.id.empty() ? std::nullopt : std::optional(std::move(job));
}

std::optional<Duration> parse_slurm_time(std::string_view text) {
    constexpr std::int64_t kMostDays = 36'500;
    std::int64_t whole_days = 0;
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos) {
        const auto days = number_of<std::int64_t>(text.substr(0, dash));
        if (!days || *days < 0 || *days > kMostDays) {
            return std::nullopt;
        }
        whole_days = *days;
        text.remove_prefix(dash + 1);
    }
    std::int64_t seconds = 0;
    int parts = 0;
    bool more = true;
    while (more) {
        const std::size_t colon = text.find(':');
        const auto part = number_of<std::int64_t>(text.substr(0, colon));
        if (!part || *part < 0 || *part > kMostDays * 24 * 60 || ++parts > 3) {
            return std::nullopt;
        }
        seconds = seconds * 60 + *part;
        more = colon != std::string_view::npos;
        text.remove_prefix(more ? colon + 1 : text.size());
    }
    if (parts < 2) {
        return std::nullopt;
    }
    return std::chrono::seconds(seconds) + std::chrono::hours(24 * whole_days);
}

Result<JobRecord> parse_job_record(std::string_view text) {
    const std::size_t begin = text.find("JobId=");
    if (begin == std::string_view::npos) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("scontrol names no job but says '{}'", text.substr(0, text.find('\n')))};
    }
    // The first line: the others are of other parts of the job.
    text = text.substr(begin, text.find('\n', begin) - begin);
    JobRecord record;
    record.state = value_of(text, "JobState");
    record.restarts = number_of<std::uint32_t>(value_of(text, "Restarts")).value_or(0);
    record.may_requeue = value_of(text, "Requeue") == "1";
    record.batch_host = value_of(text, "BatchHost");
    record.run_time = parse_slurm_time(value_of(text, "RunTime")).value_or(Duration{0});
    record.time_limit = parse_slurm_time(value_of(text, "TimeLimit"));
    if (record.time_limit) {
        record.time_left = *record.time_limit - record.run_time;
        // A limit is whole minutes, and the end that a site has set for a job is not.
        const auto start = parse_date(value_of(text, "StartTime"));
        const auto end = parse_date(value_of(text, "EndTime"));
        const Duration exact = start && end ? *end - *start - record.run_time : Duration{0};
        // Not where the job was suspended meanwhile, or clocks were changed for the summer.
        if (start && end && exact - record.time_left < kMinute &&
            record.time_left - exact < kMinute) {
            record.time_left = exact;
        }
    }
    return record;
}

std::optional<Duration> parse_kill_wait(std::string_view config) {
    // "KillWait                = 30 sec"
    constexpr std::string_view kKey = "KillWait";
    const std::size_t at = config.find("\nKillWait ");
    const std::size_t equals = at == std::string_view::npos ? at : config.find('=', at);
    if (equals == std::string_view::npos || config.find('\n', at + kKey.size()) < equals) {
        return std::nullopt;
    }
    const std::size_t begin = config.find_first_not_of(' ', equals + 1);
    const std::size_t end = config.find_first_not_of("0123456789", begin);
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    const auto number = number_of<std::int64_t>(config.substr(begin, end - begin));
    constexpr std::int64_t kMost = 86'400;
    return number && *number >= 0 && *number <= kMost
               ? std::optional<Duration>(std::chrono::seconds(*number))
               : std::nullopt;
}

bool is_node_down(std::string_view text) {
    // "State=DOWN*+DRAIN": the star is for a node that does not answer.
    const std::string_view state = value_of(text, "State");
    return state.starts_with("DOWN");
}

}  // namespace muster
