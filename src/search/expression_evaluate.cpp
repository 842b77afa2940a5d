// SPDX-License-Identifier: Apache-2.0
//
// The stack machine that runs a parsed formula. Jumps go forward only, so it always ends.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "search/expression.hpp"
#include "search/formula_values.hpp"

namespace muster {
namespace {

/// How many values an operation takes.
std::size_t operands(Instruction instruction) {
    if (instruction.code == OpCode::Minimum || instruction.code == OpCode::Maximum) {
        return instruction.operand;
    }
    return instruction.code >= OpCode::Add ? 2 : 1;
}

/// Replaces the operands on top of the stack by the result.
Status operate(Instruction instruction, std::vector<Value>& stack) {
    std::size_t left = stack.size() - operands(instruction);
    Result<Value> result = operands(instruction) == 1
                               ? apply(instruction.code, stack[left])
                               : apply(instruction.code, stack[left], stack[left + 1]);
    // Only min and max take more than two.
    for (std::size_t next = left + 2; result.ok() && next < stack.size(); ++next) {
        result = apply(instruction.code, *result, stack[next]);
    }
    if (!result) {
        return result.error();
    }
    stack.resize(left);
    stack.push_back(*std::move(result));
    return Ok{};
}

/// How many instructions to leave out. `and`, `or` and `if` take the truth off the stack unless it
/// is the result.
Result<std::size_t> branch(Instruction instruction, std::vector<Value>& stack) {
    if (instruction.code == OpCode::Jump) {
        return std::size_t{instruction.operand};
    }
    const Result<bool> held = truth(instruction.code, stack.back());
    if (!held) {
        return held.error();
    }
    const bool jumps = *held == (instruction.code == OpCode::Or);
    if (!jumps || instruction.code == OpCode::Unless) {
        stack.pop_back();
    }
    return std::size_t{jumps ? instruction.operand : 0};
}

/// Carries out one instruction and says how many of the following ones to leave out.
Result<std::size_t> step(
    Instruction instruction,
    const std::vector<Value>& constants,
    const std::vector<const Value*>& keys,
    std::vector<Value>& stack
) {
    if (instruction.code >= OpCode::And) {
        return branch(instruction, stack);
    }
    if (instruction.code == OpCode::Constant) {
        stack.push_back(constants[instruction.operand]);
    } else if (instruction.code == OpCode::Key) {
        const Value* value = keys[instruction.operand];
        stack.push_back(value != nullptr ? *value : Value());
    } else if (const Status done = operate(instruction, stack); !done) {
        return done.error();
    }
    return std::size_t{0};
}

Result<Value> run(
    const std::vector<Instruction>& code,
    const std::vector<Value>& constants,
    const std::vector<const Value*>& keys
) {
    std::vector<Value> stack;
    stack.reserve(8);
    for (std::size_t at = 0; at < code.size(); ++at) {
        const Result<std::size_t> skipped = step(code[at], constants, keys, stack);
        if (!skipped) {
            return skipped.error();
        }
        at += *skipped;
    }
    check(stack.size() == 1, "a formula leaves one value");
    return std::move(stack.back());
}

}  // namespace

Result<Value> Formula::evaluate(const std::vector<const Value*>& values) const {
    check(values.size() == keys_.size(), "a formula is given one value for each of its keys");
    Result<Value> result = run(code_, constants_, values);
    if (result) {
        return result;
    }
    std::string where;
    for (std::size_t key = 0; key < keys_.size(); ++key) {
        where += fmt::format(
            "{} {} {}",
            key == 0 ? ", where" : ",",
            keys_[key],
            values[key] != nullptr ? "is " + to_json(*values[key]) : "has no value"
        );
    }
    return Error{
        result.error().code, fmt::format("'{}': {}{}", text_, result.error().message, where)};
}

}  // namespace muster
