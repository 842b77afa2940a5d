// SPDX-License-Identifier: Apache-2.0
//
// trial_metric - what a report is made of. Included by muster/trial.hpp.
//
// Header only, standard library only.

#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster::trial {

/// One name with a number, a truth or a text.
class Metric {
  public:
    template <class T>
    Metric(std::string_view name, const T& value) {  // NOLINT(google-explicit-constructor)
        append_text(name);
        json_ += ": ";
        if constexpr (std::is_same_v<T, bool>) {
            json_ += value ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
            append_number(value);
        } else if constexpr (std::is_floating_point_v<T>) {
            append_real(value);
        } else {
            append_text(std::string_view(value));
        }
    }

    /// "loss": 0.31
    const std::string& json() const { return json_; }

  private:
    template <class T>
    std::string_view append_number(T value) {
        char digits[64];
        const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
        const auto size = static_cast<std::size_t>(end.ptr - digits);
        json_.append(digits, size);
        return std::string_view(json_).substr(json_.size() - size);
    }

    template <class T>
    void append_real(T value) {
        if (!std::isfinite(value)) {
            json_ += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
        } else if (append_number(value).find_first_of(".e") == std::string_view::npos) {
            json_ += ".0";
        }
    }

    void append_text(std::string_view text) {
        constexpr std::string_view kHex = "0123456789abcdef";
        json_ += '"';
        for (const char character : text) {
            const auto byte = static_cast<unsigned char>(character);
            if (byte < 0x20) {
                json_ += "\\u00";
                json_ += kHex[byte >> 4U];
                json_ += kHex[byte & 0xFU];
                continue;
            }
            if (character == '"' || character == '\\') {
                json_ += '\\';
            }
            json_ += character;
        }
        json_ += '"';
    }

    std::string json_;
};

using Metrics = std::vector<Metric>;

}  // namespace muster::trial
