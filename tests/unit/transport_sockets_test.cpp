// SPDX-License-Identifier: Apache-2.0
//
// How MPI's sockets are found, given to ranks and seen to end, with sockets of our own in its
// place.

#include <algorithm>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"
#include "transport/socket_ends.hpp"
#include "transport/tcp_sockets.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// A listening socket on the loopback and what is connected through it.
class Listener {
  public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd_.get(), as_sockaddr(address), sizeof address), 0);
        EXPECT_EQ(::listen(fd_.get(), 8), 0);
    }

    /// Both ends: the one that connected, the one that was accepted.
    std::pair<UniqueFd, UniqueFd> connect() {
        sockaddr_in address{};
        socklen_t length = sizeof address;
        EXPECT_EQ(::getsockname(fd_.get(), as_sockaddr(address), &length), 0);
        UniqueFd near(::socket(AF_INET, SOCK_STREAM, 0));
        EXPECT_EQ(::connect(near.get(), as_sockaddr(address), sizeof address), 0);
        UniqueFd far(::accept(fd_.get(), nullptr, nullptr));
        return {std::move(near), std::move(far)};
    }

  private:
    static sockaddr* as_sockaddr(sockaddr_in& address) {
        return reinterpret_cast<sockaddr*>(&address);
    }

    UniqueFd fd_;
};

void talk(const UniqueFd& from, const UniqueFd& to, std::size_t size = 100) {
    std::string bytes(size, 'x');
    EXPECT_EQ(::write(from.get(), bytes.data(), size), static_cast<ssize_t>(size));
    EXPECT_EQ(::recv(to.get(), bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
}

Introduction mirrored(Introduction introduction) {
    for (SocketEnds& ends : introduction.ends) {
        std::swap(ends.local, ends.remote);
    }
    return introduction;
}

/// One turn of a loop that waits for at most a second.
void poll_once(TcpSockets& sockets) {
    std::vector<pollfd> fds;
    sockets.add_poll_fds(fds);
    ASSERT_GT(::poll(fds.data(), fds.size(), 1000), 0);
    sockets.polled(fds);
}

TEST(TcpSocketsTest, OnlyWhatIsNewIsTakenForMpis) {
    Listener old;
    TcpSockets sockets(TcpSockets::open_now());
    sockets.scan();
    EXPECT_FALSE(sockets.listening());

    Listener added;
    sockets.scan();

    EXPECT_TRUE(sockets.listening());
    std::vector<pollfd> fds;
    sockets.add_poll_fds(fds);
    ASSERT_THAT(fds, SizeIs(1));
    EXPECT_NE(::fcntl(fds[0].fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(TcpSocketsTest, ConnectionThatOnlyShookHandsIsNobodys) {
    Listener listener;
    TcpSockets sockets(TcpSockets::open_now());
    const auto [near, far] = listener.connect();
    talk(near, far, 24);
    sockets.scan();
    EXPECT_THAT(sockets.unclaimed().ends, IsEmpty());

    talk(near, far);

    EXPECT_THAT(sockets.unclaimed().ends, SizeIs(2));
}

TEST(TcpSocketsTest, EndOfAClaimedConnectionIsToldOnce) {
    Listener listener;
    TcpSockets sockets(TcpSockets::open_now());
    auto [near, far] = listener.connect();
    talk(near, far);
    sockets.scan();
    const Introduction all = sockets.unclaimed();
    const Introduction theirs = mirrored({all.network, {all.ends.front()}});
    EXPECT_THAT(sockets.claim(3, theirs).ends, SizeIs(1));
    EXPECT_TRUE(sockets.has_claimed(3));
    EXPECT_TRUE(sockets.sound(3));
    EXPECT_THAT(sockets.take_ended(), IsEmpty());

    // The claimed one may be either, by the number of its descriptor.
    near.get() < far.get() ? far.reset() : near.reset();
    poll_once(sockets);

    EXPECT_TRUE(sockets.dirty());
    EXPECT_FALSE(sockets.sound(3));
    sockets.scan();
    EXPECT_THAT(sockets.take_ended(), ElementsAre(3));
    EXPECT_THAT(sockets.take_ended(), IsEmpty());
    EXPECT_FALSE(sockets.has_claimed(3));
}

TEST(TcpSocketsTest, ConnectionIsNotOverWhileBytesAreUnread) {
    Listener listener;
    TcpSockets sockets(TcpSockets::open_now());
    auto [near, far] = listener.connect();
    talk(near, far);
    sockets.scan();
    const Introduction all = sockets.unclaimed();
    sockets.claim(1, mirrored({all.network, {all.ends.front()}}));
    UniqueFd& ours = near.get() < far.get() ? near : far;
    UniqueFd& theirs = near.get() < far.get() ? far : near;

    EXPECT_EQ(::write(theirs.get(), "last words", 10), 10);
    theirs.reset();
    poll_once(sockets);
    sockets.scan();
    EXPECT_THAT(sockets.take_ended(), IsEmpty());

    std::string words(10, ' ');
    EXPECT_EQ(::recv(ours.get(), words.data(), words.size(), MSG_WAITALL), 10);
    EXPECT_THAT(sockets.take_ended(), ElementsAre(1));
}

TEST(TcpSocketsTest, ClaimedSocketThatMpiClosesHasEnded) {
    Listener listener;
    TcpSockets sockets(TcpSockets::open_now());
    auto [near, far] = listener.connect();
    talk(near, far);
    sockets.scan();
    sockets.claim(2, mirrored(sockets.unclaimed()));

    near.reset();
    EXPECT_FALSE(sockets.sound(2));
    sockets.scan();

    EXPECT_TRUE(sockets.dirty());
    EXPECT_THAT(sockets.take_ended(), ElementsAre(2));
}

TEST(TcpSocketsTest, SocketThatNobodyReadsIsWaitedForNoMore) {
    Listener listener;
    TcpSockets sockets(TcpSockets::open_now());
    const auto [near, far] = listener.connect();
    sockets.scan();
    EXPECT_EQ(::write(near.get(), "x", 1), 1);

    int polls = 0;
    std::vector<pollfd> fds;
    do {
        fds.clear();
        sockets.add_poll_fds(fds);
        ::poll(fds.data(), fds.size(), 0);
        sockets.polled(fds);
        ++polls;
    } while (fds.size() == 2 && polls < 10'000);

    EXPECT_EQ(fds.size(), 1U);
    sockets.count_as_read();
    fds.clear();
    sockets.add_poll_fds(fds);
    EXPECT_EQ(fds.size(), 2U);
}

SocketAddress
v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
    SocketAddress address;
    address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
    address.port = port;
    return address;
}

TEST(SocketEndsTest, MirroredEndsAreOneConnection) {
    const SocketEnds mine{v4(10, 0, 0, 1, 1024), v4(10, 0, 0, 2, 40'000)};
    const SocketEnds theirs{v4(10, 0, 0, 2, 40'000), v4(10, 0, 0, 1, 1024)};

    EXPECT_TRUE(same_connection(mine, 1, {2, {theirs}}));
    EXPECT_FALSE(same_connection(mine, 1, {2, {mine}}));
    EXPECT_FALSE(same_connection(mine, 1, {2, {}}));
}

TEST(SocketEndsTest, AddressesThatEveryMachineHasCountWithinOneOnly) {
    const SocketEnds loopback{v4(127, 0, 0, 1, 1024), v4(127, 0, 1, 1, 40'000)};
    const SocketEnds bridge{v4(172, 17, 0, 1, 1024), v4(172, 17, 0, 1, 40'000)};
    for (const SocketEnds& mine : {loopback, bridge}) {
        const SocketEnds theirs{mine.remote, mine.local};
        EXPECT_TRUE(same_connection(mine, 1, {1, {theirs}}));
        EXPECT_FALSE(same_connection(mine, 1, {2, {theirs}}));
    }
}

TEST(SocketEndsTest, IntroductionsSurviveTheJourneyAndNonsenseDoesNot) {
    const Introduction introduction{
        0x0123456789abcdef, {{v4(10, 0, 0, 1, 65'535), v4(10, 0, 0, 2, 1)}}};
    const std::string bytes = encode(introduction);

    EXPECT_EQ(decode_introduction(bytes).value(), introduction);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        if (size != bytes.size() - 36) {
            EXPECT_FALSE(decode_introduction(bytes.substr(0, size)).ok()) << size;
        }
    }
    EXPECT_FALSE(is_introduction("MLK1 and more"));
}

}  // namespace
}  // namespace muster
