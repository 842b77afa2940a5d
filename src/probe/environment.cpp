// SPDX-License-Identifier: Apache-2.0

#include "probe/environment.hpp"

#include <string>

#include <unistd.h>

// Declared by POSIX, in no header.
extern char** environ;

namespace muster::probe {

Environment own_environment() {
    Environment environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos) {
            environment.push_back(
                {.name = std::string(text.substr(0, equals)),
                 .value = std::string(text.substr(equals + 1))}
            );
        }
    }
    return environment;
}

std::optional<std::string_view> find(const Environment& environment, std::string_view name) {
    for (const EnvironmentVariable& variable : environment) {
        if (variable.name == name) {
            return variable.value;
        }
    }
    return std::nullopt;
}

}  // namespace muster::probe
