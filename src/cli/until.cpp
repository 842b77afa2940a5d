// SPDX-License-Identifier: Apache-2.0

#include "cli/until.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "spec/scalar.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

Error refuse(const std::string& what, const std::string& text) {
    return {
        ErrorCode::InvalidInput,
        fmt::format(
            "{}, found '{}': write a duration (2h, 90m), a time of day (17:30) or a date with one "
            "(2026-12-01T17:30)",
            what,
            text
        )};
}

/// Reads the whole text by `format`; fails where strptime() does, and on days that no month has.
std::optional<std::tm> read(const std::string& text, const char* format, std::tm from) {
    const char* end = ::strptime(text.c_str(), format, &from);
    return end != nullptr && *end == '\0' ? std::optional(from) : std::nullopt;
}

/// The time of day, since 1970; nothing for one that is not there (30 February).
std::optional<Duration> since_1970(std::tm when, bool utc) {
    when.tm_isdst = -1;
    const int day = when.tm_mday;
    const std::time_t time = utc ? ::timegm(&when) : ::mktime(&when);
    return time >= 0 && when.tm_mday == day ? std::optional<Duration>(std::chrono::seconds(time))
                                            : std::nullopt;
}

std::optional<Duration> date_of(std::string text) {
    const bool utc = text.back() == 'Z';
    if (utc) {
        text.pop_back();
    }
    for (const char* format :
         {"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"}) {
        if (const std::optional<std::tm> when = read(text, format, std::tm{})) {
            return since_1970(*when, utc);
        }
    }
    return std::nullopt;
}

/// The next time that clocks show `text`.
std::optional<Duration> clock_time_of(const std::string& text, Duration now) {
    const std::time_t time = now / 1s;
    std::tm today{};
    ::localtime_r(&time, &today);
    today.tm_sec = 0;
    for (const char* format : {"%H:%M", "%H:%M:%S"}) {
        std::optional<std::tm> when = read(text, format, today);
        if (!when) {
            continue;
        }
        std::optional<Duration> at = since_1970(*when, false);
        if (at && *at <= now) {
            // mktime() knows how long a month is; tm_mday may be one too many for it only here.
            ++when->tm_mday;
            when->tm_isdst = -1;
            at = std::chrono::seconds(::mktime(&*when));
        }
        return at;
    }
    return std::nullopt;
}

}  // namespace

Result<Until> parse_until(const std::string& text, Duration now) {
    Until until{.at = {}, .whole = {}, .why = "--until " + text};
    if (text.find(':') == std::string::npos) {
        const Result<Duration> duration = parse_duration(text);
        if (!duration.ok() || *duration <= 0s) {
            return refuse("expected a time that is still to come", text);
        }
        until.whole = *duration;
        until.at = now + *duration;
        return until;
    }
    const bool has_date = text.find('-') != std::string::npos;
    const std::optional<Duration> at = has_date ? date_of(text) : clock_time_of(text, now);
    if (!at) {
        return refuse("expected a time", text);
    }
    if (*at <= now) {
        return refuse("expected a time that is still to come", text);
    }
    until.at = *at;
    return until;
}

}  // namespace muster
