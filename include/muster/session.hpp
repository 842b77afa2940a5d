// SPDX-License-Identifier: Apache-2.0
//
// session - what a C++ program that runs trials makes first, once.
//
//     int main(int argc, char** argv) {
//         muster::Session session{argc, argv, {{"train", train}}};
//         …
//
// It forks the process that all trials descend from, and joins the other ranks when a launcher
// (mpirun, srun) started the program. Ranks other than 0 serve their nodes inside the constructor
// and leave the program there: what comes after it runs once.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "muster/error.hpp"
#include "muster/trainable.hpp"

namespace muster {

/// What `muster run` takes on its command line, under the same names. A program's own command line
/// is stronger: Session takes these options out of it.
struct SessionOptions {
    /// --rank-is-node: every rank is a node, also where several share a host.
    bool rank_is_node = false;
    /// --dedicated-head: keep the node of rank 0 free of trials.
    bool dedicated_head = false;
    /// --node-resources: "cpu=4,gpu=2": what each node has, in place of what it really has.
    std::string node_resources;
    /// --cluster: a file that says what each node has.
    std::string cluster;
    /// --cpus threads: a hardware thread counts as one CPU, in place of a core.
    bool cpus_are_threads = false;
    /// --start-timeout: how long to wait for nodes that do not answer.
    std::chrono::nanoseconds start_timeout = std::chrono::seconds{60};
    /// --lease: a node that was silent for so long is lost. At least 1 s.
    std::chrono::nanoseconds lease = std::chrono::seconds{60};
    /// --rejoin: how long a node that was cut off tries to come back.
    std::chrono::nanoseconds rejoin = std::chrono::minutes{10};
    /// --wait-for-nodes: how long to wait for a node to come back when those left can't run what
    /// waits.
    std::chrono::nanoseconds wait_for_nodes{0};
    /// --keep-going: go on although every trial fails from the first on.
    bool keep_going = false;
    /// --fresh: begin anew in NAME-2, NAME-3, … beside what is there.
    bool fresh = false;
    /// --retry failed: when going on, run trials that failed again, from their latest checkpoints.
    bool retry_failed = false;
    /// --restart: with retry_failed, from nothing.
    bool restart_failed = false;
    /// --plain: log lines in place of the live table; --quiet: neither.
    bool plain = false;
    bool quiet = false;
    /// How long the other ranks wait for the next fit(), then take rank 0 for gone and leave.
    std::chrono::nanoseconds idle_patience = std::chrono::hours{24};
};

/// A program has one Session at a time, made by its only thread before anything that opens a GPU,
/// starts threads or calls MPI_Init: function trials are forked from the process as it is then.
class Session {
  public:
    /// As open(); where that fails, says why on stderr and ends the program (exit code 2, or 5 when
    /// the system failed).
    Session(
        int& argc,
        char**& argv,
        const Trainables& trainables,
        const SessionOptions& options = {}
    );

    /// Takes muster's options out of `argv`, and becomes able to run trials. With a launcher only
    /// rank 0 returns.
    ///
    /// Warns on stderr when the process has more than 256 MB of memory of its own: each trial's
    /// start copies its page tables.
    ///
    /// Errors: InvalidInput, saying the way out: the process has other threads, has called
    /// MPI_Init, or holds an NVIDIA device open; two trainables of one name, one without a name or
    /// a function; an option's value. Conflict: there is a Session already. System.
    static Result<Session>
    open(int& argc, char**& argv, const Trainables& trainables, const SessionOptions& options = {});

    /// Sends the other ranks away and ends everything that trials left.
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Processes of the launcher, this one included; 1 without one.
    std::uint32_t ranks() const;

    /// For Tuner alone.
    struct State;
    State& state() { return *state_; }

  private:
    explicit Session(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

}  // namespace muster
