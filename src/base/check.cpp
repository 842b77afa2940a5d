// SPDX-License-Identifier: Apache-2.0

#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace muster {

void fail_check(const char* claim, const char* file, int line) {
    std::fprintf(stderr, "muster: internal error: not true that %s (%s:%d)\n", claim, file, line);
    std::abort();
}

}  // namespace muster
