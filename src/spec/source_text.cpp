// SPDX-License-Identifier: Apache-2.0

#include "spec/source_text.hpp"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace muster {
namespace {

constexpr std::size_t kLargest = std::size_t{8} << 20U;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string too_large(std::size_t size) {
    return fmt::format("{} bytes are too many; at most 8 MiB are read", size);
}

/// \r\n and \r become \n.
std::string with_plain_lines(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '\r') {
            plain += text[at];
        } else if (at + 1 == text.size() || text[at + 1] != '\n') {
            plain += '\n';
        }
    }
    return plain;
}

std::optional<std::size_t> find_control_character(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) {
            return at;
        }
    }
    return std::nullopt;
}

/// The four hexadecimal digits of "\uXXXX" at `at`, if they are there.
std::optional<unsigned> unicode_escape(std::string_view text, std::size_t at) {
    constexpr std::size_t kLength = 6;
    if (text.size() - at < kLength || text[at] != '\\' || text[at + 1] != 'u') {
        return std::nullopt;
    }
    unsigned code = 0;
    const char* first = text.data() + at + 2;
    const auto [end, problem] = std::from_chars(first, first + 4, code, 16);
    if (problem != std::errc() || end != first + 4) {
        return std::nullopt;
    }
    return code;
}

/// YAML has no surrogates: \ud83d\ude00 becomes \U0001f600.
std::string with_joined_surrogates(std::string_view json) {
    std::string joined;
    for (std::size_t at = 0; at < json.size();) {
        if (json[at] != '\\') {
            joined += json[at++];
            continue;
        }
        constexpr std::size_t kPair = 12;
        const std::optional<unsigned> high = unicode_escape(json, at);
        const std::optional<unsigned> low =
            high && json.size() - at >= kPair ? unicode_escape(json, at + 6) : std::nullopt;
        if (high && low && (*high & 0xFC00U) == 0xD800U && (*low & 0xFC00U) == 0xDC00U) {
            const unsigned code = 0x10000U + ((*high & 0x3FFU) << 10U) + (*low & 0x3FFU);
            joined += fmt::format("\\U{:08x}", code);
            at += kPair;
            continue;
        }
        joined += json.substr(at, 2);
        at += 2;
    }
    return joined;
}

bool is_json(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\n");
    return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace

Place place_of(std::string_view text, std::size_t at) {
    Place place;
    for (std::size_t index = 0; index < at; ++index) {
        const auto byte = static_cast<unsigned char>(text[index]);
        if (byte == '\n') {
            ++place.line;
            place.column = 1;
        } else if ((byte & 0xC0U) != 0x80U) {
            ++place.column;
        }
    }
    return place;
}

Result<std::string> prepare_source(std::string_view text, Problems& problems, std::uint32_t set) {
    const auto refuse = [&](Place place, const std::string& message) {
        place.set = set;
        problems.add(place, "", message);
        return Error{ErrorCode::InvalidInput, message};
    };
    if (text.size() > kLargest) {
        return refuse({}, too_large(text.size()));
    }
    if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
        text.remove_prefix(kByteOrderMark.size());
    }
    if (const std::optional<std::size_t> at = find_not_utf8(text)) {
        return refuse(
            place_of(text, *at),
            fmt::format(
                "the byte 0x{:02x} is not UTF-8; save the file as UTF-8",
                static_cast<unsigned>(static_cast<unsigned char>(text[*at]))
            )
        );
    }
    std::string plain = with_plain_lines(text);
    if (const std::optional<std::size_t> at = find_control_character(plain)) {
        return refuse(
            place_of(plain, *at),
            fmt::format(
                "the control character 0x{0:02x} is not text; in double quotes \\x{0:02x} means it",
                static_cast<unsigned>(static_cast<unsigned char>(plain[*at]))
            )
        );
    }
    return is_json(plain) ? with_joined_surrogates(plain) : std::move(plain);
}

Result<std::string> read_text_file(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text;
    // One byte more than is allowed tells a file that is too large, endless ones included.
    constexpr std::size_t kPart = std::size_t{64} << 10U;
    std::string part(kPart, '\0');
    while (file && text.size() <= kLargest) {
        file.read(part.data(), static_cast<std::streamsize>(part.size()));
        text.append(part, 0, static_cast<std::size_t>(file.gcount()));
    }
    if (text.size() > kLargest) {
        return Error{
            ErrorCode::InvalidInput, path + ": the file is too large; at most 8 MiB are read"};
    }
    if (!file.eof()) {
        const std::error_code reason(errno == 0 ? EIO : errno, std::generic_category());
        if (reason == std::errc::is_a_directory) {
            return Error{ErrorCode::InvalidInput, path + ": a directory; name a file in it"};
        }
        return Error{
            reason == std::errc::no_such_file_or_directory ? ErrorCode::NotFound
                                                           : ErrorCode::System,
            path + ": " + reason.message()};
    }
    return text;
}

}  // namespace muster
