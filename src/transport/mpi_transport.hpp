// SPDX-License-Identifier: Apache-2.0
//
// mpi_transport - the Transport over MPI. MPI has no descriptor to wait for, and moves only when it
// is called: so a loop waits for the TCP sockets that MPI made, which costs next to nothing. Where
// MPI uses something else (shared memory, UCX), the loop spins a little and then sleeps, longer
// and longer up to a millisecond.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/linked_transport.hpp"
#include "transport/mpi_wire.hpp"
#include "transport/tcp_sockets.hpp"

namespace muster {

struct MpiTransportOptions {
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    /// MPI sends everything through TCP, so that waiting for its sockets is enough.
    bool tcp_only = false;
    /// What open_now() said before MPI_Init.
    std::vector<TcpSockets::Id> sockets_before;
};

class MpiTransport final : public LinkedTransport {
  public:
    explicit MpiTransport(MpiTransportOptions options);

    void add_poll_fds(std::vector<pollfd>& fds) override;
    void polled(std::span<const pollfd> fds) override;
    Duration longest_wait() const override;

    /// The end of all talk, before MPI_Finalize: the last acknowledgements go out.
    void close();

  protected:
    bool ready(std::uint32_t to) override;
    bool blocked(std::uint32_t to) const override;
    void hand_over(std::uint32_t to, std::string frame) override;
    void fetch() override;

  private:
    using Clock = std::chrono::steady_clock;

    /// What is known of a peer beside its link.
    struct Peer {
        bool heard = false;
        /// The ends that it was told of last, and when.
        std::vector<SocketEnds> told;
        Clock::time_point told_at;
    };

    bool still_young() const;
    void drain();
    void on_introduction(std::uint32_t from, std::string_view bytes);
    void introduce();
    void look_for_ends();

    MpiWire wire_;
    TcpSockets sockets_;
    bool tcp_only_;
    std::vector<Peer> peers_;
    /// Connections are being made.
    bool young_ = true;
    Clock::time_point began_;
    Clock::time_point scanned_;
    /// When a frame went out or came in last.
    Clock::time_point active_;
};

}  // namespace muster
