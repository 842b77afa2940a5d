// SPDX-License-Identifier: Apache-2.0
//
// check - the third form of failure: we are wrong, and say so at once.

#pragma once

namespace muster {

/// Prints `claim` with its place and aborts.
[[noreturn]] void fail_check(const char* claim, const char* file, int line);

/// Aborts unless `condition` holds, in every build type. `claim` says in words what must be true.
/// Never use it on bytes from another process or on anything a user wrote: those are Errors.
inline void check(
    bool condition,
    const char* claim,
    const char* file = __builtin_FILE(),
    int line = __builtin_LINE()
) {
    if (!condition) {
        fail_check(claim, file, line);
    }
}

}  // namespace muster
