// SPDX-License-Identifier: Apache-2.0
//
// build_id - what tells one build of the running program from every other.

#pragma once

#include <string>

namespace muster {

/// The version, and the identity that the linker gave the program: "0.1.0 (3f9a…)". The version
/// alone when there is none.
std::string build_id();

}  // namespace muster
