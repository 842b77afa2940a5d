// SPDX-License-Identifier: Apache-2.0
//
// libfuzzer - how libFuzzer reaches a target.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_target.hpp"

// The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
    muster::fuzz::try_input({reinterpret_cast<const char*>(data), size});            // NOLINT
    return 0;
}
