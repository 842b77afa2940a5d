// SPDX-License-Identifier: Apache-2.0
//
// server_lines - what each line of a client leads to.

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/ids.hpp"
#include "base/overloaded.hpp"
#include "report/report_line.hpp"
#include "report/server_state.hpp"

namespace muster {
namespace {

constexpr std::size_t kConnectionsOfMember = 128;

/// Whether the `count`th refusal is told: the first ten, then each tenth power.
bool is_told(std::uint64_t count) {
    constexpr std::uint64_t kFirst = 10;
    std::uint64_t rest = count;
    while (rest % kFirst == 0) {
        rest /= kFirst;
    }
    return count <= kFirst || rest == 1;
}

std::string describe(const MemberKey& key) {
    return fmt::format(
        "trial {}, attempt {}, member {}",
        to_string(key.trial),
        to_string(key.attempt),
        key.member.value
    );
}

}  // namespace

void ReportServerState::handle(
    Connection& connection,
    ConnectionId id,
    std::string_view line,
    std::vector<AgentEvent>& events
) {
    if (line.empty()) {
        return;
    }
    Result<TrialLine> read = read_trial_line(line);
    if (!read) {
        refuse(connection, read.error().message, events);
        return;
    }
    if (!connection.member && !std::holds_alternative<HelloLine>(*read)) {
        refuse(connection, "the first line must be a hello", events);
        return;
    }
    std::visit(
        Overloaded{
            [&](const HelloLine& hello) { handle_hello(connection, id, hello, events); },
            [&](ReportLine& report) { handle_report(connection, id, std::move(report), events); },
            [&](CheckpointLine& checkpoint) {
                connection.owes_checkpoint = true;
                checkpoints.push_back({*connection.member, id, std::move(checkpoint)});
            },
            [&](const ConfigLine&) {
                connection.send(config_line(
                    connection.lines_taken(), members.at(*connection.member).config_json
                ));
            },
        },
        *read
    );
}

void ReportServerState::handle_hello(
    Connection& connection,
    ConnectionId id,
    const HelloLine& hello,
    std::vector<AgentEvent>& events
) {
    if (connection.member) {
        refuse(connection, "a second hello on one connection", events);
        return;
    }
    if (hello.protocol != kReportProtocol) {
        const std::string why =
            fmt::format("protocol {} is not {}, the one known", hello.protocol, kReportProtocol);
        turn_away(connection, hello.key, why, events);
        return;
    }
    const auto found = members.find(hello.key);
    if (found == members.end()) {
        turn_away(connection, hello.key, describe(hello.key) + " does not run here", events);
        return;
    }
    if (found->second.connections.size() >= kConnectionsOfMember) {
        const std::string why =
            fmt::format("more than {} connections at once", kConnectionsOfMember);
        turn_away(connection, hello.key, why, events);
        return;
    }
    connection.member = hello.key;
    strangers.erase(id);
    found->second.connections.insert(id);
    connection.send(welcome_line());
    if (found->second.stop_told) {
        connection.send(stop_line());
    }
    if (found->second.end) {
        const Duration left = *found->second.end - std::chrono::steady_clock::now();
        connection.send(warning_line(std::max(left, Duration{0})));
    }
}

void ReportServerState::handle_report(
    Connection& connection,
    ConnectionId id,
    ReportLine report,
    std::vector<AgentEvent>& events
) {
    events.emplace_back(ReportArrived{*connection.member, std::move(report.metrics)});
    if (report.wait) {
        connection.owes_decision = true;
        waiting.push_back(id);
    }
}

void ReportServerState::refuse(
    Connection& connection,
    const std::string& why,
    std::vector<AgentEvent>& events
) {
    if (!connection.member) {
        turn_away(connection, {}, why, events);
        return;
    }
    connection.send_if_read(error_line(connection.lines_taken(), why, false));
    const std::uint64_t count = ++members.at(*connection.member).refused;
    if (is_told(count)) {
        const std::string total = count > 10 ? fmt::format(" ({} refused so far)", count) : "";
        events.emplace_back(ReportRefused{*connection.member, "report refused: " + why + total});
    }
}

/// Refuses a client that is, or may be, no member's. What is remarked of such is counted together.
void ReportServerState::turn_away(
    Connection& connection,
    const MemberKey& claimed,
    const std::string& why,
    std::vector<AgentEvent>& events
) {
    connection.send(error_line(connection.lines_taken(), why, true));
    connection.doomed = true;
    if (is_told(++strangers_refused)) {
        std::string text =
            fmt::format("process {} was refused at the report socket: {}", connection.pid(), why);
        events.emplace_back(ReportRefused{claimed, std::move(text)});
    }
}

}  // namespace muster
