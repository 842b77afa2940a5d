// SPDX-License-Identifier: Apache-2.0

#include "runtime/serve_node.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>

#include "agent/agent.hpp"
#include "process/environment.hpp"
#include "process/processes.hpp"
#include "process/spawner.hpp"
#include "report/report_server.hpp"
#include "runtime/descriptors.hpp"
#include "runtime/end_watch.hpp"
#include "runtime/experiment_clock.hpp"
#include "runtime/host.hpp"
#include "runtime/lost_head.hpp"
#include "runtime/node_side.hpp"
#include "runtime/post.hpp"
#include "runtime/roll_call.hpp"
#include "runtime/run_dir.hpp"
#include "runtime/signals.hpp"
#include "runtime/team_file.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kHeadRank = 0;
constexpr Duration kShortestWait = 200us;
constexpr Duration kLongestWait = 1s;
constexpr Duration kShutdownPatience = 10s;
/// Rank 0 reads the spec and what earlier runs left before it gives the others their roles.
constexpr Duration kRolePatience = 15min;
/// What trials say may wait here before they are held back.
constexpr std::size_t kMostUnsent = std::size_t{4} << 20U;

class ServeLoop : private HeadLine {
  public:
    ServeLoop(
        Transport& transport,
        SignalSource& signals,
        Agent& agent,
        Processes& processes,
        ReportServer& reports,
        LostHead lost_head,
        std::uint32_t& incarnation
    )
        : transport_(transport),
          signals_(signals),
          lost_head_(std::move(lost_head)),
          post_(transport),
          node_(agent, processes, reports, *this),
          clock_(TimePoint{}, monotonic_now()),
          incarnation_(incarnation) {}

    ServeEnd run(const NodeInventory& inventory) {
        lost_head_.heard(world_now().boot);
        node_.tell(NodeProbed{inventory, incarnation_}, clock_.now());
        while (!node_.has_left()) {
            turn();
        }
        // The last words, a farewell say.
        post_.flush();
        if (!orderly_ && !head_is_gone_) {
            wait_until_sent(transport_, {kHeadRank}, 1s);
        }
        return {orderly_, dismissed_};
    }

  private:
    void say(FromAgent message) override { post_.send(kHeadRank, std::move(message)); }

    void begin_anew(std::uint32_t incarnation) override {
        post_.forget(kHeadRank);
        transport_.begin_anew(kHeadRank, incarnation);
        incarnation_ = incarnation;
    }

    void turn() {
        constexpr std::size_t kOwn = 2;
        const bool reading = transport_.unsent(kHeadRank) < kMostUnsent;
        fds_.assign({{signals_.fd(), POLLIN, 0}, {lost_head_.fd(), POLLIN, 0}});
        node_.add_poll_fds(fds_, reading);
        transport_.add_poll_fds(fds_);
        const Duration until_due = std::min(
            node_.next_deadline() - clock_.now(), lost_head_.longest_wait(world_now().boot)
        );
        const Duration wait = std::min(
            transport_.longest_wait(), std::clamp<Duration>(until_due, kShortestWait, kLongestWait)
        );
        const timespec timeout{wait / 1s, (wait % 1s).count()};
        const int ready = ::ppoll(fds_.data(), fds_.size(), &timeout, nullptr);
        clock_.advance(monotonic_now(), wait);
        if (clock_.gap() > Duration{0}) {
            node_.tell(StoodStill{clock_.gap()}, clock_.now());
        }
        if (ready < 0) {
            fds_.assign(fds_.size(), {-1, 0, 0});
        }
        if (fds_[0].revents != 0) {
            signals_.receive();
        }
        node_.take(&fds_[kOwn], clock_.now());
        transport_.polled(std::span<const pollfd>(fds_).subspan(kOwn + NodeSide::kPollFds));
        hear_head();
        lost_head_.look(world_now().boot);
        node_.tick(clock_.now());
        post_.flush();
    }

    void hear_head() {
        AgentPost::Inbox inbox = post_.receive(true);
        if (!inbox.heard.empty()) {
            lost_head_.heard(world_now().boot);
        }
        for (AgentPost::Heard& heard : inbox.heard) {
            if (const auto* dismiss = std::get_if<Dismiss>(&heard.message)) {
                orderly_ = dismiss->orderly;
                dismissed_ = true;
            }
            node_.tell(HeadSaid{std::move(heard.message)}, clock_.now());
        }
        if (!transport_.take_broken().empty() || !inbox.unreadable.empty()) {
            head_is_gone_ = true;
            node_.tell(HeadLost{}, clock_.now());
        }
    }

    Transport& transport_;
    SignalSource& signals_;
    LostHead lost_head_;
    AgentPost post_;
    NodeSide node_;
    ExperimentClock clock_;
    std::vector<pollfd> fds_;
    std::uint32_t& incarnation_;
    bool orderly_ = false;
    bool dismissed_ = false;
    bool head_is_gone_ = false;
};

/// Waits for rank 0's next word. A rank without work waits for ever: whether rank 0 is gone is seen
/// by its connection, or by the end of the job.
Enlisted next_word(Transport& transport, std::optional<Duration> patience) {
    // What stands when rank 0 is gone.
    Enlisted word{.role = RankRole::Dismissed, .orderly = false};
    bool over = false;
    const auto hear = [&](const std::vector<ReceivedMessage>& messages) {
        for (const ReceivedMessage& message : messages) {
            if (Result<Enlisted> said = decode_enlisted(message.bytes); said.ok()) {
                word = std::move(*said);
                over = true;
            }
        }
        over = over || !transport.take_broken().empty();
        return over;
    };
    while (!over && !wait_for(transport, patience.value_or(1h), -1, hear) && !patience) {
    }
    return word;
}

/// Has told rank 0 why it can't serve: as after a run.
ServeEnd give_up(Transport& transport, const Error& problem) {
    tell_ready(transport, {problem.message});
    return {.orderly = true, .dismissed = true};
}

Result<ServeEnd>
serve_as_agent(const ServeRequest& request, const Enlisted& enlisted, std::uint32_t& incarnation) {
    if (const Status found = find_token(enlisted); !found.ok()) {
        return give_up(*request.transport, found.error());
    }
    make_descriptor_room();
    Result<ReportServer> reports = ReportServer::listen(request.run_dir->path());
    if (!reports.ok()) {
        return give_up(*request.transport, reports.error());
    }
    tell_ready(*request.transport, {});
    Processes processes(
        std::move(*request.spawner), with_node_values(enlisted.environment, current_environment())
    );
    Agent agent(AgentOptions{
        .run_dir = request.run_dir->path(),
        .socket_path = reports->socket_path(),
        .scratch_dir = scratch_directory(),
        .user = user_number(),
        .heartbeat = enlisted.heartbeat,
        .lease = enlisted.lease,
        .rejoin = enlisted.rejoin});
    LostHead lost_head(current_environment(), enlisted.lease, request.transport->rank());
    ServeLoop loop(
        *request.transport,
        *request.signals,
        agent,
        processes,
        *reports,
        std::move(lost_head),
        incarnation
    );
    const ServeEnd end = loop.run(enlisted.inventory);
    if (enlisted.again && end.dismissed) {
        if (std::optional<Spawner> spawner = processes.give_back(kShutdownPatience)) {
            *request.spawner = *std::move(spawner);
            return end;
        }
        return Error{
            ErrorCode::System,
            "some processes of trials could not be ended: this rank serves no further run"};
    }
    if (processes.shutdown(kShutdownPatience) && !end.dismissed) {
        // The head may be gone: whoever goes on with the experiment need not wait for this node.
        sign_off(enlisted.token_path, request.transport->rank());
    }
    return end;
}

}  // namespace

Result<ServeEnd> serve_node(const ServeRequest& request) {
    Transport& transport = *request.transport;
    const Result<Enlisted> enlisted = answer_roll_call(transport, request.enrol, kRolePatience);
    if (!enlisted.ok()) {
        return enlisted.error();
    }
    Enlisted word = *enlisted;
    // That of the agent's next Hello: it rises over all runs.
    std::uint32_t incarnation = 1;
    while (word.role != RankRole::Dismissed) {
        std::optional<Duration> patience;
        if (word.role == RankRole::Agent) {
            const Result<ServeEnd> end = serve_as_agent(request, word, incarnation);
            if (!end.ok()) {
                return end.error();
            }
            const bool may_serve_again = request.spawner->socket() >= 0;
            if (!may_serve_again) {
                return *end;
            }
            patience = word.again ? std::optional(word.again_patience) : std::nullopt;
        }
        word = next_word(transport, patience);
    }
    return ServeEnd{word.orderly};
}

}  // namespace muster
