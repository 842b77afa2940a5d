// SPDX-License-Identifier: Apache-2.0
//
// linked_transport - what the forms of Transport have in common: a Link to every other rank. A form
// adds how frames get from here to there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/link.hpp"
#include "transport/transport.hpp"

namespace muster {

class LinkedTransport : public Transport {
  public:
    std::uint32_t rank() const final { return rank_; }
    std::uint32_t size() const final { return static_cast<std::uint32_t>(links_.size()); }

    void send(std::uint32_t to, Lane lane, std::string message) final;
    std::vector<ReceivedMessage> receive(bool with_bulk) final;
    std::size_t unsent(std::uint32_t to) const final;
    void abandon(std::uint32_t peer, std::uint32_t session) final;
    void begin_anew(std::uint32_t peer, std::uint32_t session) final;
    std::vector<BrokenPair> take_broken() final;

  protected:
    LinkedTransport(std::uint32_t rank, std::uint32_t size) : rank_(rank), links_(size) {}

    /// A frame for the peer can be handed over now.
    virtual bool ready(std::uint32_t to) = 0;
    /// The last time that it was asked whether the peer is ready, a frame was still on its way out.
    virtual bool blocked(std::uint32_t to) const = 0;
    /// REQUIRES: ready(to).
    virtual void hand_over(std::uint32_t to, std::string frame) = 0;
    /// Gives on_frame() all that has come in, without waiting, and tells break_pair() what ended.
    virtual void fetch() = 0;

    void on_frame(std::uint32_t from, std::string_view frame);
    void break_pair(std::uint32_t peer, std::string why);
    const Link& link(std::uint32_t peer) const { return links_[peer]; }

    /// Hands over what may go out now.
    void move_out();
    /// How long what the links hold may wait for the next receive().
    Duration links_can_wait() const;

  private:
    std::uint32_t rank_;
    /// By rank; this rank's own is not used.
    std::vector<Link> links_;
    std::vector<BrokenPair> newly_broken_;
};

}  // namespace muster
