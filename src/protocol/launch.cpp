// SPDX-License-Identifier: Apache-2.0

#include "protocol/launch.hpp"

#include <fmt/format.h>

namespace muster {

std::string checkpoint_name(std::uint32_t number) {
    return fmt::format("checkpoint_{:06}", number);
}

}  // namespace muster
