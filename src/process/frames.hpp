// SPDX-License-Identifier: Apache-2.0
//
// frames - what agent and keeper say to each other over their socket, and how it is written down.
//
// A frame is a length (4 bytes, of what follows), a kind (1 byte) and fields one after the other,
// numbers in the machine's own order: both ends are one binary on one machine. Nothing outside
// has a hand on the socket, yet a frame that can't be read is told, never trusted.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/value.hpp"

#include "protocol/launch.hpp"
#include "protocol/outcome.hpp"

namespace muster {

// --- agent to keeper ---

/// What the trials of this keeper see below their own variables, from now on.
struct UseEnvironment {
    std::vector<std::string> entries;
};

struct LaunchMember {
    LaunchPlan plan;
};

/// End the member, if there is one.
struct EndNow {
    bool kill = false;
};

struct BindNow {
    std::vector<std::uint32_t> processing_units;
};

/// Send the member's own process a signal that does not ask for its end.
struct SignalNow {
    std::int32_t number = 0;
};

using ToKeeper = std::variant<UseEnvironment, LaunchMember, EndNow, BindNow, SignalNow>;

// --- keeper to agent ---

struct KeeperStarted {
    std::int32_t pid = 0;
    std::string binding_problem;
};

struct KeeperReports {
    std::vector<std::vector<ValueMember>> reports;
};

struct KeeperRemark {
    std::string text;
};

struct KeeperEnded {
    Outcome outcome;
    Usage usage;
    /// As Ended::last_lines.
    std::string last_lines;
};

using FromKeeper = std::variant<KeeperStarted, KeeperReports, KeeperRemark, KeeperEnded>;

/// Appends one frame to `out`.
void append_frame(const UseEnvironment& frame, std::string& out);
void append_frame(const LaunchPlan& plan, std::string& out);
void append_frame(const EndNow& frame, std::string& out);
void append_frame(const BindNow& frame, std::string& out);
void append_frame(const SignalNow& frame, std::string& out);
void append_frame(const KeeperStarted& frame, std::string& out);
void append_frame(const KeeperReports& frame, std::string& out);
void append_frame(const KeeperRemark& frame, std::string& out);
void append_frame(const KeeperEnded& frame, std::string& out);

/// Bytes as they come in, cut into frames.
class FrameBuffer {
  public:
    void append(std::string_view bytes) { bytes_.append(bytes); }

    /// Takes the next whole frame out. Nothing when none is complete, or when the bytes mean
    /// nothing: then broken() is true and stays so.
    std::optional<ToKeeper> next_to_keeper();
    std::optional<FromKeeper> next_from_keeper();

    bool broken() const { return broken_; }

  private:
    std::optional<std::string_view> next_body();
    void drop_used();

    std::string bytes_;
    std::size_t used_ = 0;
    bool broken_ = false;
};

}  // namespace muster
