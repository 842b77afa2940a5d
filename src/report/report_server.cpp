// SPDX-License-Identifier: Apache-2.0

#include "report/report_server.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "report/listen_socket.hpp"
#include "report/server_state.hpp"

namespace muster {

struct ReportServer::State : ReportServerState {};

Result<ReportServer> ReportServer::listen(const std::string& run_dir) {
    auto state = std::make_unique<State>();
    Result<UniqueFd> listener = listen_in(run_dir, state->path);
    if (!listener) {
        return listener.error();
    }
    state->listener = std::move(*listener);
    ReportServer server(std::move(state));
    const Status opened = server.state_->open();
    if (!opened) {
        return opened.error();
    }
    return server;
}

ReportServer::ReportServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ReportServer::ReportServer(ReportServer&&) noexcept = default;
ReportServer& ReportServer::operator=(ReportServer&&) noexcept = default;

ReportServer::~ReportServer() = default;

const std::string& ReportServer::socket_path() const {
    return state_->path;
}

int ReportServer::fd() const {
    return state_->epoll.get();
}

void ReportServer::expect(const MemberKey& key, std::string config_json) {
    state_->members[key].config_json = std::move(config_json);
}

void ReportServer::forget(const MemberKey& key) {
    const auto found = state_->members.find(key);
    if (found == state_->members.end()) {
        return;
    }
    const std::set<ConnectionId> connections = std::move(found->second.connections);
    state_->members.erase(found);
    for (const ConnectionId id : connections) {
        state_->close(id);
    }
}

std::vector<AgentEvent> ReportServer::receive(std::size_t budget) {
    std::vector<AgentEvent> events;
    state_->answer_waiting();
    state_->poll_kernel();
    while (budget > 0 && !state_->work.empty()) {
        const ConnectionId id = state_->work.front();
        state_->work.pop_front();
        const auto found = state_->connections.find(id);
        if (found == state_->connections.end()) {
            continue;
        }
        found->second.queued = false;
        budget -=
            std::min(budget, state_->serve(found->second, id, std::min(budget, kSlice), events));
        state_->settle(id);
    }
    if (!state_->accepting && state_->silent_stranger()) {
        // Those that had their turn meanwhile and said nothing can make room.
        state_->set_accepting(true);
    }
    state_->set_wake_up();
    return events;
}

std::vector<AgentEvent> ReportServer::drain(const MemberKey& key) {
    std::vector<AgentEvent> events;
    // The system may have had no room when it was tried last.
    state_->set_accepting(true);
    state_->accept_some();
    std::set<ConnectionId> candidates = state_->strangers;
    const auto found = state_->members.find(key);
    if (found != state_->members.end()) {
        candidates.insert(found->second.connections.begin(), found->second.connections.end());
    }
    for (const ConnectionId id : candidates) {
        state_->drain(id, key, events);
    }
    state_->set_wake_up();
    return events;
}

void ReportServer::tell_stop(const MemberKey& key) {
    const auto found = state_->members.find(key);
    if (found == state_->members.end() || std::exchange(found->second.stop_told, true)) {
        return;
    }
    const std::set<ConnectionId> connections = found->second.connections;
    for (const ConnectionId id : connections) {
        state_->connections.at(id).send(stop_line());
        state_->settle(id);
    }
    state_->set_wake_up();
}

void ReportServer::tell_warning(const MemberKey& key, Duration left) {
    const auto found = state_->members.find(key);
    if (found == state_->members.end()) {
        return;
    }
    found->second.end = std::chrono::steady_clock::now() + left;
    const std::set<ConnectionId> connections = found->second.connections;
    for (const ConnectionId id : connections) {
        state_->connections.at(id).send(warning_line(left));
        state_->settle(id);
    }
    state_->set_wake_up();
}

std::vector<ReportServer::CheckpointAsked> ReportServer::take_checkpoints() {
    return std::exchange(state_->checkpoints, {});
}

void ReportServer::answer_checkpoint(std::uint64_t ticket, std::string_view name) {
    const auto found = state_->connections.find(ticket);
    if (found != state_->connections.end()) {
        const std::uint64_t line = found->second.lines_taken();
        state_->answer_checkpoint(ticket, checkpoint_line(line, name));
    }
}

void ReportServer::refuse_checkpoint(std::uint64_t ticket, std::string_view why) {
    const auto found = state_->connections.find(ticket);
    if (found != state_->connections.end()) {
        const std::uint64_t line = found->second.lines_taken();
        state_->answer_checkpoint(ticket, error_line(line, why, false));
    }
}

std::size_t ReportServer::connection_count() const {
    return state_->connections.size();
}

}  // namespace muster
