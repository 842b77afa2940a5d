// SPDX-License-Identifier: Apache-2.0

#include "launch/exit_line.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace muster {
namespace {

/// In the order of Announcement::Kind.
constexpr std::array<std::string_view, 3> kKinds = {"begin", "alive", "exit"};

std::optional<std::int64_t> number_behind(std::string_view line, const std::string& prefix) {
    if (!line.starts_with(prefix)) {
        return std::nullopt;
    }
    std::int64_t number = 0;
    const char* end = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + prefix.size(), end, number);
    const bool is_whole = parsed.ec == std::errc{} && parsed.ptr == end;
    return is_whole ? std::optional(number) : std::nullopt;
}

void say(const Announcement& said) {
    const std::string token = launch_token();
    if (!token.empty()) {
        const std::string text = announcement_line(said, token) + "\n";
        (void)!::write(STDERR_FILENO, text.data(), text.size());
    }
}

}  // namespace

std::string announcement_line(const Announcement& said, std::string_view token) {
    const std::string_view kind = kKinds.at(static_cast<std::size_t>(said.kind));
    return fmt::format("{}{} {} {}", kAnnouncement, kind, token, said.value);
}

std::string launch_token() {
    // Nobody changes the environment at these moments.
    const char* token = std::getenv(kLaunchToken.data());  // NOLINT(concurrency-mt-unsafe)
    return token == nullptr ? "" : token;
}

std::string signal_line(std::string_view token, int number) {
    return fmt::format("{} {}", token, number);
}

std::optional<int> signal_of(std::string_view line, std::string_view token) {
    const std::optional<std::int64_t> number = number_behind(line, fmt::format("{} ", token));
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

void announce_begin() {
    say({.kind = Announcement::Kind::Begin});
}

void announce_alive(std::chrono::seconds patience) {
    pollfd errors{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    // What is not read at all must not stop the run. A pipe that has room has it for a whole line.
    if (::poll(&errors, 1, 0) == 1 && errors.revents == POLLOUT) {
        say({.kind = Announcement::Kind::Alive, .value = patience.count()});
    }
}

void announce_exit_code(int code) {
    static bool is_said = false;
    if (std::exchange(is_said, true)) {
        return;
    }
    say({.kind = Announcement::Kind::End, .value = code});
}

std::optional<Announcement> announcement_of(std::string_view line, std::string_view token) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
        const std::string prefix = fmt::format("{}{} {} ", kAnnouncement, kKinds.at(kind), token);
        if (const std::optional<std::int64_t> value = number_behind(line, prefix)) {
            return Announcement{static_cast<Announcement::Kind>(kind), *value};
        }
    }
    return std::nullopt;
}

}  // namespace muster
