// SPDX-License-Identifier: Apache-2.0
//
// server_state - what ReportServer holds and how its connections have their turns.
//
// One epoll set with the listening socket, every connection, and an eventfd that stands for work
// which the kernel does not know of: lines read but not handled, decisions owed.
//
// A call reads at most once from each connection and handles at most a slice of its lines before
// the next connection has its turn. A connection that does not read its answers, or waits for a
// decision, is left alone meanwhile; the kernel then holds its trial back.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"
#include "protocol/agent_events.hpp"
#include "protocol/messages.hpp"
#include "report/connection.hpp"
#include "report/report_line.hpp"
#include "report/report_server.hpp"

namespace muster {

using ConnectionId = std::uint64_t;

/// Lines of one connection before the next one has its turn.
inline constexpr std::size_t kSlice = 256;

struct ReportMember {
    std::string config_json;
    bool stop_told = false;
    /// When its time ends, once it is to be warned of that.
    std::optional<std::chrono::steady_clock::time_point> end;
    std::uint64_t refused = 0;
    std::set<ConnectionId> connections;
};

struct ReportServerState {
    std::string path;
    UniqueFd listener;
    UniqueFd epoll;
    UniqueFd wake_up;
    /// Connections at once.
    std::size_t limit = 0;
    bool accepting = true;
    bool awake = false;
    std::map<MemberKey, ReportMember> members;
    std::map<ConnectionId, Connection> connections;
    /// Connections that have not said who they are.
    std::set<ConnectionId> strangers;
    std::uint64_t strangers_refused = 0;
    ConnectionId next_id = 2;
    /// Connections with lines or bytes to be handled, each once, in turn.
    std::deque<ConnectionId> work;
    /// Connections that a decision is owed to.
    std::vector<ConnectionId> waiting;
    /// Not taken by the owner yet.
    std::vector<ReportServer::CheckpointAsked> checkpoints;
    /// What one read of a connection takes at most.
    std::vector<char> scratch = std::vector<char>(std::size_t{64} << 10U);

    ReportServerState() = default;
    ~ReportServerState();
    ReportServerState(const ReportServerState&) = delete;
    ReportServerState& operator=(const ReportServerState&) = delete;

    bool watch(int operation, ConnectionId id, int fd, std::uint32_t what) const;

    // server_turns.cpp: connections come, have their turns, go.
    Status open();
    void accept_some();
    void set_accepting(bool wanted);
    bool evict_stranger();
    std::optional<ConnectionId> silent_stranger() const;
    void poll_kernel();
    void enqueue(ConnectionId id, Connection& connection);
    void settle(ConnectionId id);
    void close(ConnectionId id);
    void answer_waiting();
    void set_wake_up();
    std::size_t serve(
        Connection& connection,
        ConnectionId id,
        std::size_t most,
        std::vector<AgentEvent>& events
    );
    void drain(ConnectionId id, const MemberKey& key, std::vector<AgentEvent>& events);

    // server_lines.cpp: what a line leads to.
    void handle(
        Connection& connection,
        ConnectionId id,
        std::string_view line,
        std::vector<AgentEvent>& events
    );
    void handle_hello(
        Connection& connection,
        ConnectionId id,
        const HelloLine& hello,
        std::vector<AgentEvent>& events
    );
    void handle_report(
        Connection& connection,
        ConnectionId id,
        ReportLine report,
        std::vector<AgentEvent>& events
    );
    void answer_checkpoint(ConnectionId id, const std::string& line);
    void refuse(Connection& connection, const std::string& why, std::vector<AgentEvent>& events);
    void turn_away(
        Connection& connection,
        const MemberKey& claimed,
        const std::string& why,
        std::vector<AgentEvent>& events
    );
};

}  // namespace muster
