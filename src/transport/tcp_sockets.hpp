// SPDX-License-Identifier: Apache-2.0
//
// tcp_sockets - the TCP sockets that MPI made in this process: what a loop waits for, and the only
// sign of a rank's end, since MPI itself says nothing.
//
// They are found in /proc/self/fd: every stream socket of the internet that was not there before
// MPI_Init. A connection counts as a rank's when both sides named the same two addresses (see
// socket_ends) and more than Open MPI's handshake has passed on it, for it gives up one of two
// connections that were made at the same time. Open MPI never ends such a connection by itself
// and never makes another in its place. So when it ends, frames are lost and the pair is broken
// for certain.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "base/time.hpp"
#include "transport/socket_ends.hpp"

namespace muster {

class TcpSockets {
  public:
    /// A descriptor and what it stands for: numbers are used again.
    struct Id {
        int fd = -1;
        ino_t inode = 0;

        friend auto operator<=>(const Id&, const Id&) = default;
    };

    /// The TCP sockets that this process has now.
    static std::vector<Id> open_now();

    /// What is `not_mpi` is left alone.
    explicit TcpSockets(std::vector<Id> not_mpi);

    /// Looks for new sockets and for ones that are gone, and makes new ones close-on-exec: a child
    /// that held one would hide our end from the peer.
    void scan();
    /// Something happened that a scan() would show.
    bool dirty() const { return dirty_; }
    void set_dirty() { dirty_ = true; }

    bool listening() const;

    /// Also for room to write, on the connections of the ranks in `writing`.
    void add_poll_fds(std::vector<pollfd>& fds, std::span<const std::uint32_t> writing = {});
    /// REQUIRES: what the last add_poll_fds() added.
    void polled(std::span<const pollfd> fds);
    /// Something came in, so that those that polled() saw readable were rightly so.
    void count_as_read();

    /// Connections in use that no rank has claimed, at most kMostEnds.
    Introduction unclaimed() const;
    /// Those of ours that `theirs` names are the connections of `rank`. Returns them all, also
    /// those that were known to be.
    Introduction claim(std::uint32_t rank, const Introduction& theirs);
    bool has_claimed(std::uint32_t rank) const { return claimed_.count(rank) != 0; }

    /// No claimed connection of `rank` shows an end; asks the system.
    bool sound(std::uint32_t rank);
    /// Ranks of which a connection ended with all its bytes read, each once; to be asked when MPI
    /// had nothing more to give.
    std::vector<std::uint32_t> take_ended();

  private:
    struct Socket {
        Id id;
        bool listening = false;
        std::optional<SocketEnds> ends;
        std::optional<std::uint32_t> rank;
        /// poll() saw its end.
        bool ending = false;
        /// How often it was readable while nothing came in; not waited for when that is often.
        std::uint32_t idle_wakes = 0;
    };

    static constexpr std::uint32_t kMostIdleWakes = 200;

    std::vector<Id> not_mpi_;
    std::uint64_t network_;
    std::vector<Socket> sockets_;
    /// The sockets of each rank; and ranks of which one ended, until told.
    std::map<std::uint32_t, std::vector<Id>> claimed_;
    std::vector<std::uint32_t> ended_;
    /// Indices into sockets_, as added to the last poll.
    std::vector<std::size_t> polled_;
    bool dirty_ = true;
};

}  // namespace muster
