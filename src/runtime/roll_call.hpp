// SPDX-License-Identifier: Apache-2.0
//
// roll_call - who is there, who serves which node, and whether all see the experiment's storage,
// before the first message between head and agents. Every wait has an end.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "protocol/roll_call.hpp"
#include "runtime/roles.hpp"
#include "runtime/team_file.hpp"
#include "transport/transport.hpp"

namespace muster {

/// What to tell every agent.
struct EnlistOptions {
    std::vector<std::string> environment;
    /// An existing directory; the token file is made in it and removed afterwards. Empty: storage
    /// is not looked at.
    std::string shared_directory;
    Duration heartbeat{0};
    Duration lease{0};
    Duration rejoin{0};
    /// How long to wait until an agent is ready.
    Duration timeout = std::chrono::seconds{60};
};

/// Rank 0's part.
class RollCall {
  public:
    /// `say` gets what people should know. `stop_fd`, when readable, ends every wait early.
    RollCall(Transport& transport, std::function<void(const std::string&)> say, int stop_fd);
    /// As dismiss().
    ~RollCall();
    RollCall(const RollCall&) = delete;
    RollCall& operator=(const RollCall&) = delete;

    /// Waits until every rank has enrolled, or `timeout` has passed; then goes on with those that
    /// came, says who is missing and takes them for lost. `own` is rank 0's.
    /// Errors: InvalidInput, when a rank runs another build.
    Result<std::vector<EnrolledRank>> gather(const Enrol& own, Duration timeout);

    /// Gives everybody his role. Returns the agents that are ready, which are those of `roles`, in
    /// order, without those that did not answer.
    /// Errors: InvalidInput, when an agent can't begin, since it does not see the shared directory,
    /// say (naming its node); System, when the token can't be written.
    Result<std::vector<AgentRank>> enlist(const Roles& roles, const EnlistOptions& options);

    /// The agents that enlist() has returned, without rank 0's own, for who goes on after a head
    /// that died.
    TeamFile team(const std::vector<AgentRank>& agents, Duration lease) const;

    /// Some rank was lost: nobody may wait for the others.
    bool lost_any() const { return lost_any_; }
    /// What agents said to the head while others were still waited for.
    std::vector<ReceivedMessage> take_early() { return std::exchange(early_, {}); }

    /// Sends away those who are present and did not become agents.
    void dismiss();

    /// From now on runs follow each other: gather() asks the ranks once and later gives those that
    /// are left, who are told to wait for their next role for `patience` after each run.
    void keep_on(Duration patience) { again_patience_ = patience; }
    /// `agents` were dismissed by their run. They are present again when more runs may follow;
    /// else those who were no agents are sent away.
    void end_run(const std::vector<std::uint32_t>& agents);
    /// As in the constructor.
    void set_stop_fd(int fd) { stop_fd_ = fd; }

  private:
    std::vector<EnrolledRank> enrolled_and_present() const;
    void dismiss_ready(const std::vector<std::uint32_t>& ready);
    void lose(std::uint32_t rank, const std::string& why);
    void take_broken();
    Result<std::string> make_token(const EnlistOptions& options, std::string& path);
    Result<std::vector<AgentRank>>
    hear_who_is_ready(const std::vector<AgentRank>& agents, const EnlistOptions& options);
    Result<std::vector<AgentRank>> settle_ready(
        const std::vector<AgentRank>& agents,
        const std::map<std::uint32_t, AgentReady>& heard
    );
    bool is_lost(std::uint32_t rank) const;

    Transport& transport_;
    std::function<void(const std::string&)> say_;
    int stop_fd_;
    /// Ranks that are not lost, did not leave, and are no agents; 0 is not among them.
    std::vector<std::uint32_t> present_;
    /// By rank: what gather() heard.
    std::map<std::uint32_t, Enrol> enrolled_;
    std::string token_path_;
    std::vector<ReceivedMessage> early_;
    bool lost_any_ = false;
    /// Nothing: one run is all.
    std::optional<Duration> again_patience_;
};

/// Any other rank's part: enrols, and waits for its role.
/// Errors: System, when rank 0 is gone or has nothing to say for `patience`; Corrupt.
Result<Enlisted> answer_roll_call(Transport& transport, const Enrol& own, Duration patience);

/// Ok when the token file is there; looks for as long as rank 0 says.
/// Errors: InvalidInput, with what to do.
Status find_token(const Enlisted& enlisted);

/// An agent's last word before it begins.
void tell_ready(Transport& transport, const AgentReady& ready);

/// Waits until `done` says so, moving the transport on; false when `patience` has passed, or
/// `stop_fd` (unless negative) became readable, before.
bool wait_for(
    Transport& transport,
    Duration patience,
    int stop_fd,
    const std::function<bool(std::vector<ReceivedMessage>)>& done
);

/// Waits until nothing that was sent to `ranks` waits here any more, or `patience` has passed.
void wait_until_sent(
    Transport& transport,
    const std::vector<std::uint32_t>& ranks,
    Duration patience
);

}  // namespace muster
