// SPDX-License-Identifier: Apache-2.0
//
// socket_ends - how two processes find out which of their TCP connections are the same one: each
// tells the other both addresses of its end, and a pair of ends that mirror each other is one
// connection. Pure.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

namespace muster {

/// IPv4 as the IPv6 address that stands for it.
struct SocketAddress {
    std::array<std::uint8_t, 16> ip{};
    std::uint16_t port = 0;

    friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

struct SocketEnds {
    SocketAddress local;
    SocketAddress remote;

    friend bool operator==(const SocketEnds&, const SocketEnds&) = default;
};

/// What a process tells another of its connections.
struct Introduction {
    /// The same for processes that share their network's addresses: of machine and namespace.
    std::uint64_t network = 0;
    std::vector<SocketEnds> ends;

    friend bool operator==(const Introduction&, const Introduction&) = default;
};

/// At most so many ends fit into one.
inline constexpr std::size_t kMostEnds = 256;

/// REQUIRES: at most kMostEnds.
std::string encode(const Introduction& introduction);
/// What is not one at all, or, from is_introduction() on, a broken one.
bool is_introduction(std::string_view bytes);
/// Errors: Corrupt.
Result<Introduction> decode_introduction(std::string_view bytes);

/// `mine`, in the network `network`, and an end that `theirs` names are one connection for certain.
/// Addresses that many machines have, such as loopback, count within one network only.
bool same_connection(const SocketEnds& mine, std::uint64_t network, const Introduction& theirs);

}  // namespace muster
