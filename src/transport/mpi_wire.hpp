// SPDX-License-Identifier: Apache-2.0
//
// mpi_wire - frames from rank to rank by MPI_Isend and MPI_Irecv on MPI_COMM_WORLD, with one tag.
// Nothing here waits.
//
// There are two ways to receive. MPI_Iprobe looks first and moves MPI on afterwards: what comes in
// by its last call is seen by the next one only, so that whoever goes to sleep on sockets between
// the two sleeps on a message. A receipt posted ahead, for any source, is looked at after MPI moved
// on. But where a long frame takes several turns (shared memory), one rank that dies in the midst
// of its frame would keep the frames of all others away; so there it is MPI_Iprobe.
//
// At most one send to a rank is unfinished: a second would be queued inside MPI, and when its
// peer dies Open MPI 4.1 aborts this process for what it has queued.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "muster/error.hpp"

#include "base/time.hpp"

namespace muster {

class MpiWire {
  public:
    struct Arrival {
        std::uint32_t from = 0;
        std::string bytes;
        /// It was longer than any frame; `bytes` is no use.
        bool too_long = false;
    };

    /// REQUIRES: MPI is initialised, and MPI_COMM_WORLD returns errors.
    MpiWire(std::uint32_t size, std::size_t longest_frame, bool post_ahead);
    ~MpiWire();
    MpiWire(const MpiWire&) = delete;
    MpiWire& operator=(const MpiWire&) = delete;

    /// The last send to the rank is not finished; asks MPI.
    bool busy(std::uint32_t to);
    /// busy(), as it was when asked last.
    bool unfinished(std::uint32_t to) const;
    /// The ranks to which it is so.
    std::span<const std::uint32_t> sending() const;
    /// REQUIRES: not busy(to). Errors: System.
    Status send(std::uint32_t to, std::string frame);

    /// What has come in next; of one rank in its order. Posted ahead: after nothing, nothing is
    /// there that came in before any other call is made.
    std::optional<Arrival> next();

    /// How long the longest unfinished send or receipt takes by now; nothing when there is none.
    std::optional<Duration> oldest_unfinished() const;

    /// Forgets what is unfinished with the rank, whose connection ended. MPI may still look at the
    /// memory, which is kept.
    void give_up(std::uint32_t rank);

    /// Takes back what was posted ahead, before MPI_Finalize. Nothing can be received after it.
    void close();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace muster
