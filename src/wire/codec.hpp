// SPDX-License-Identifier: Apache-2.0
//
// codec - messages to bytes and back, for any transport. Only the same build reads what it wrote:
// every frame begins with a stamp of the version, the form and the direction.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "protocol/messages.hpp"
#include "protocol/roll_call.hpp"

namespace muster {

/// One frame with one message.
std::string encode(const ToAgent& message);
std::string encode(const FromAgent& message);

/// One frame with several messages, in order; may be empty.
std::string encode(std::span<const ToAgent> messages);
std::string encode(std::span<const FromAgent> messages);

/// The messages of one frame, in order. Never allocates much more than the frame's own size,
/// whatever the bytes say.
/// Errors: Corrupt, when the bytes are not exactly one frame of this direction and build.
Result<std::vector<ToAgent>> decode_to_agent(std::string_view bytes);
Result<std::vector<FromAgent>> decode_from_agent(std::string_view bytes);

/// One frame with a word of the roll call.
std::string encode(const Enrol& enrol);
std::string encode(const Enlisted& enlisted);
std::string encode(const AgentReady& ready);

/// Errors: as decode_to_agent().
Result<Enrol> decode_enrol(std::string_view bytes);
Result<Enlisted> decode_enlisted(std::string_view bytes);
Result<AgentReady> decode_agent_ready(std::string_view bytes);

}  // namespace muster
