// SPDX-License-Identifier: Apache-2.0

#include "search/formula_code.hpp"

#include <array>
#include <cstddef>

namespace muster {
namespace {

// In the order of OpCode.
constexpr std::array<std::string_view, 37> kSymbols{// Constant, Key
                                                    "",
                                                    "",
                                                    // Negate … ToText
                                                    "-",
                                                    "+",
                                                    "not",
                                                    "and/or",
                                                    "abs",
                                                    "round",
                                                    "floor",
                                                    "ceil",
                                                    "sqrt",
                                                    "exp",
                                                    "log",
                                                    "log2",
                                                    "log10",
                                                    "int",
                                                    "float",
                                                    "str",
                                                    // Add … GreaterEqual
                                                    "+",
                                                    "-",
                                                    "*",
                                                    "/",
                                                    "//",
                                                    "%",
                                                    "**",
                                                    "==",
                                                    "!=",
                                                    "<",
                                                    "<=",
                                                    ">",
                                                    ">=",
                                                    // Minimum, Maximum
                                                    "min",
                                                    "max",
                                                    // And, Or, Unless, Jump
                                                    "and",
                                                    "or",
                                                    "if",
                                                    ""};

static_assert(kSymbols.size() == static_cast<std::size_t>(OpCode::Jump) + 1);
static_assert(kSymbols[static_cast<std::size_t>(OpCode::Add)] == "+");
static_assert(kSymbols[static_cast<std::size_t>(OpCode::Minimum)] == "min");

}  // namespace

std::string_view symbol(OpCode code) {
    return kSymbols[static_cast<std::size_t>(code)];
}

}  // namespace muster
