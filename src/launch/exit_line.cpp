// SPDX-License-Identifier: Apache-2.0

#include "launch/exit_line.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace muster {
namespace {

/// Nothing else begins a line so.
constexpr std::string_view kMark = "\x1emuster-";

std::string variable(std::string_view name) {
    // Nobody changes the environment at these moments.
    const char* value = std::getenv(name.data());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

/// Whole or not at all: whoever waits for the file reads it as soon as it is there.
void write_exit_file(const std::string& path, int code) {
    const std::string unfinished = path + ".new";
    std::ofstream(unfinished) << code << '\n';
    (void)std::rename(unfinished.c_str(), path.c_str());
}

void say(const std::string& line) {
    const std::string text = line + "\n";
    (void)!::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string begin_line(std::string_view token) {
    return fmt::format("{}begin {}", kMark, token);
}

std::string exit_line(std::string_view token, int code) {
    return fmt::format("{}exit {} {}", kMark, token, code);
}

void announce_begin() {
    const std::string token = variable(kLaunchToken);
    if (!token.empty()) {
        say(begin_line(token));
    }
}

void announce_exit_code(int code) {
    static bool is_said = false;
    if (std::exchange(is_said, true)) {
        return;
    }
    const std::string token = variable(kLaunchToken);
    if (!token.empty()) {
        say(exit_line(token, code));
    }
    const std::string path = variable(kExitFile);
    if (!path.empty()) {
        write_exit_file(path, code);
    }
}

std::optional<Announcement> announcement_of(std::string_view line, std::string_view token) {
    if (line == begin_line(token)) {
        return Announcement{};
    }
    const std::string prefix = fmt::format("{}exit {} ", kMark, token);
    if (!line.starts_with(prefix)) {
        return std::nullopt;
    }
    int code = 0;
    const char* begin = line.data() + prefix.size();
    const char* end = line.data() + line.size();
    const auto parsed = std::from_chars(begin, end, code);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
        return std::nullopt;
    }
    return Announcement{code};
}

}  // namespace muster
