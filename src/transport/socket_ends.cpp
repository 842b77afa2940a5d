// SPDX-License-Identifier: Apache-2.0

#include "transport/socket_ends.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/check.hpp"

namespace muster {
namespace {

constexpr std::string_view kMagic = "MSE1";
constexpr std::size_t kHeader = 12;
constexpr std::size_t kAddress = 18;

void append(std::string& bytes, const SocketAddress& address) {
    for (const std::uint8_t byte : address.ip) {
        bytes += static_cast<char>(byte);
    }
    bytes += static_cast<char>(address.port >> 8U);
    bytes += static_cast<char>(address.port & 0xffU);
}

std::uint8_t byte_at(std::string_view bytes, std::size_t place) {
    return static_cast<std::uint8_t>(bytes[place]);
}

SocketAddress address_at(std::string_view bytes, std::size_t place) {
    SocketAddress address;
    for (std::size_t i = 0; i < address.ip.size(); ++i) {
        address.ip[i] = byte_at(bytes, place + i);
    }
    address.port =
        static_cast<std::uint16_t>(byte_at(bytes, place + 16) << 8U | byte_at(bytes, place + 17));
    return address;
}

/// 127.0.0.0/8, ::1, and fe80::/10, which names a neighbour on one wire.
bool of_many_machines(const SocketAddress& address) {
    constexpr std::array<std::uint8_t, 12> kV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    constexpr std::array<std::uint8_t, 15> kZero{};
    const auto& ip = address.ip;
    const bool loopback4 = std::equal(kV4.begin(), kV4.end(), ip.begin()) && ip[12] == 127;
    const bool loopback6 = std::equal(kZero.begin(), kZero.end(), ip.begin()) && ip[15] == 1;
    const bool link_local = ip[0] == 0xfe && (ip[1] & 0xc0U) == 0x80;
    return loopback4 || loopback6 || link_local;
}

}  // namespace

std::string encode(const Introduction& introduction) {
    check(introduction.ends.size() <= kMostEnds, "an introduction fits into a frame");
    std::string bytes(kMagic);
    for (unsigned shift = 0; shift < 64; shift += 8) {
        bytes += static_cast<char>(static_cast<unsigned char>(introduction.network >> shift));
    }
    for (const SocketEnds& ends : introduction.ends) {
        append(bytes, ends.local);
        append(bytes, ends.remote);
    }
    return bytes;
}

bool is_introduction(std::string_view bytes) {
    return bytes.substr(0, kMagic.size()) == kMagic;
}

Result<Introduction> decode_introduction(std::string_view bytes) {
    if (!is_introduction(bytes) || bytes.size() < kHeader ||
        (bytes.size() - kHeader) % (2 * kAddress) != 0) {
        return Error{
            ErrorCode::Corrupt,
            fmt::format("it sent what is no introduction: {} bytes", bytes.size())};
    }
    Introduction introduction;
    for (unsigned i = 0; i < 8; ++i) {
        introduction.network |= std::uint64_t{byte_at(bytes, kMagic.size() + i)} << (8 * i);
    }
    for (std::size_t place = kHeader; place < bytes.size(); place += 2 * kAddress) {
        introduction.ends.push_back({address_at(bytes, place), address_at(bytes, place + kAddress)}
        );
    }
    return introduction;
}

bool same_connection(const SocketEnds& mine, std::uint64_t network, const Introduction& theirs) {
    // Two processes of one machine may also meet at an address that other machines have as well,
    // such as that of a bridge for containers.
    const bool one_network_only = of_many_machines(mine.local) || of_many_machines(mine.remote) ||
                                  mine.local.ip == mine.remote.ip;
    if (one_network_only && network != theirs.network) {
        return false;
    }
    const SocketEnds mirrored{mine.remote, mine.local};
    return std::find(theirs.ends.begin(), theirs.ends.end(), mirrored) != theirs.ends.end();
}

}  // namespace muster
