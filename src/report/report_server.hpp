// SPDX-License-Identifier: Apache-2.0
//
// report_server - the node's end of the report protocol (docs/report-protocol.md).
//
// One listening Unix socket serves every trial of the node. The server tells members apart by the
// hello of each connection, turns lines into agent events and writes the answers. It decides
// nothing: what a report means is the agent's and the head's business. Whatever a client sends, or
// never reads, costs a bounded amount of memory and of work in one call, and harms nobody else.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "protocol/agent_events.hpp"
#include "protocol/messages.hpp"
#include "report/report_line.hpp"

namespace muster {

class ReportServer {
  public:
    /// Listens at `run_dir`/report. The socket is removed when the server goes. No SIGPIPE is
    /// raised.
    ///
    /// Errors: InvalidInput when `run_dir` is not a directory of this user alone (mode 0700, no
    /// link) or its path is too long for a socket; System when the system refuses.
    static Result<ReportServer> listen(const std::string& run_dir);

    ~ReportServer();
    ReportServer(ReportServer&&) noexcept;
    ReportServer& operator=(ReportServer&&) noexcept;
    ReportServer(const ReportServer&) = delete;
    ReportServer& operator=(const ReportServer&) = delete;

    /// What MUSTER_SOCKET says.
    const std::string& socket_path() const;

    /// Readable (POLLIN, level-triggered) whenever receive() has something to do.
    int fd() const;

    /// The member's connections are served from now on. To be called before its process starts.
    /// `config_json` is what "config" is answered with: one JSON object on one line.
    void expect(const MemberKey& key, std::string config_json);

    /// The member's connections are closed, later ones refused. What came before is not read: see
    /// drain(). An unknown key changes nothing.
    void forget(const MemberKey& key);

    /// Handles at most about `budget` lines and says what came: ReportArrived and ReportRefused.
    /// Never blocks. A report that waits for a decision is answered when receive() is called next,
    /// so that what this report led to (tell_stop) is in the answer.
    ///
    /// ReportRefused carries the member that the client said to be, known or not; the default
    /// MemberKey when it said nothing. Of one member the first ten refusals are told, then each
    /// tenth power.
    std::vector<AgentEvent> receive(std::size_t budget = 4096);

    /// Everything that this member's processes sent before they ended and receive() has not
    /// returned yet, connections not yet accepted included. To be called once nothing of the
    /// member is left, before forget(). Bounded: at most 4 MiB of each connection.
    std::vector<AgentEvent> drain(const MemberKey& key);

    /// Tells the member on all its connections, and on those to come, that it is asked to stop.
    void tell_stop(const MemberKey& key);

    /// Tells the member on all its connections, and on those to come, that its time ends in `left`.
    void tell_warning(const MemberKey& key, Duration left);

    /// A checkpoint that a member asks to be kept. Its connection is not listened to until it has
    /// its answer.
    struct CheckpointAsked {
        MemberKey key;
        /// Names the connection.
        std::uint64_t ticket = 0;
        CheckpointLine line;
    };

    /// What was asked for in receive() and drain() since the last call, in order.
    std::vector<CheckpointAsked> take_checkpoints();

    /// The checkpoint is safe and has this name, or it is not kept, and why. A connection that is
    /// gone by now is no error.
    void answer_checkpoint(std::uint64_t ticket, std::string_view name);
    void refuse_checkpoint(std::uint64_t ticket, std::string_view why);

    std::size_t connection_count() const;

  private:
    struct State;
    explicit ReportServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace muster
