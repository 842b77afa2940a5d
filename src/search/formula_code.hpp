// SPDX-License-Identifier: Apache-2.0
//
// formula_code - the instructions that a parsed formula consists of, for a small stack machine.

#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

enum class OpCode : std::uint8_t {
    /// Push constants[operand].
    Constant,
    /// Push the value of keys[operand].
    Key,

    // One value for another.
    Negate,
    Plus,
    Not,
    /// Refuse anything but true and false: the right side of `and` and `or`.
    RequireTruth,
    Absolute,
    Round,
    Floor,
    Ceil,
    SquareRoot,
    Exponential,
    Logarithm,
    Logarithm2,
    Logarithm10,
    ToInt,
    ToReal,
    ToText,

    // One value for two.
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,

    // One value for `operand` values, at least two.
    Minimum,
    Maximum,

    /// Go `operand` instructions further when the top is false, else drop it.
    And,
    /// Go `operand` instructions further when the top is true, else drop it.
    Or,
    /// Drop the top; go `operand` instructions further when it was false.
    Unless,
    /// Go `operand` instructions further.
    Jump,
};

struct Instruction {
    OpCode code = OpCode::Constant;
    /// Its meaning is said with the codes that have one.
    std::uint32_t operand = 0;
};

/// How a formula writes it: "+", "min", "and". Empty for what is not written.
std::string_view symbol(OpCode code);

}  // namespace muster
