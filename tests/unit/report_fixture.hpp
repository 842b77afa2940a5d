// SPDX-License-Identifier: Apache-2.0
//
// report_fixture - a ReportServer in a directory of its own, and raw clients to speak to it.

#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"
#include "report/report_server.hpp"

namespace muster {

using Clock = std::chrono::steady_clock;

/// Far past anything that a test waits for.
inline constexpr std::chrono::seconds kPatience{20};

inline const MemberKey kMember{TrialId{42}, AttemptId{1, 7}, MemberId{0}};
inline const std::string kHello =
    "{\"type\":\"hello\",\"protocol\":1,\"trial\":\"00042\",\"attempt\":\"1.7\"}\n";
inline const std::string kConfigJson = "{\"lr\": 0.1, \"augment\": {\"flip\": true}}";

/// How a failed expectation shows a metric.
inline void PrintTo(const ValueMember& member, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << member.key << "=" << to_json(member.value);
}

/// A directory that goes with the test.
class RunDir {
  public:
    RunDir() {
        char path[] = "/tmp/muster-report-test-XXXXXX";
        path_ = ::mkdtemp(path);
    }
    ~RunDir() { std::filesystem::remove_all(path_); }
    RunDir(const RunDir&) = delete;
    RunDir& operator=(const RunDir&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// Waits until `fd` is ready for `what`; false after the test's patience.
inline bool wait_ready(int fd, short what) {
    pollfd entry{fd, what, 0};
    return ::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) > 0;
}

/// A client that says exactly what it is told to.
class RawClient {
  public:
    explicit RawClient(const std::string& path)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        EXPECT_EQ(::connect(fd_.get(), generic, sizeof address), 0) << std::strerror(errno);
    }

    /// Sends what the socket takes now; how much that was.
    std::size_t send_some(std::string_view bytes) {
        const ssize_t count =
            ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }

    void send(std::string_view bytes) { EXPECT_EQ(send_some(bytes), bytes.size()); }

    void shut_down() { ::shutdown(fd_.get(), SHUT_WR); }
    void close() { fd_.reset(); }

    /// What has come, at once.
    std::string received() {
        char bytes[65536];
        while (true) {
            const ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
            ended_ = ended_ || count == 0;
            if (count <= 0) {
                return text_;
            }
            text_.append(bytes, static_cast<std::size_t>(count));
        }
    }

    /// Whether the server has closed. After received().
    bool ended() const { return ended_; }

  private:
    UniqueFd fd_;
    std::string text_;
    bool ended_ = false;
};

/// A server that expects kMember.
class ReportServerTest : public ::testing::Test {
  protected:
    ReportServerTest() : server(std::move(*ReportServer::listen(dir.path()))) {
        server.expect(kMember, kConfigJson);
    }

    RawClient connect() { return RawClient(server.socket_path()); }

    RawClient connect_and_say(const std::string& lines) {
        RawClient client = connect();
        client.send(kHello + lines);
        return client;
    }

    /// Lets the server work until it has nothing to do.
    void run() {
        pollfd entry{server.fd(), POLLIN, 0};
        while (::poll(&entry, 1, 0) > 0) {
            std::vector<AgentEvent> some = server.receive();
            std::move(some.begin(), some.end(), std::back_inserter(events));
        }
    }

    std::vector<std::vector<ValueMember>> reports() const {
        std::vector<std::vector<ValueMember>> found;
        for (const AgentEvent& event : events) {
            if (const auto* report = std::get_if<ReportArrived>(&event)) {
                EXPECT_EQ(report->key, kMember);
                found.push_back(report->metrics);
            }
        }
        return found;
    }

    std::vector<std::string> refusals() const {
        std::vector<std::string> found;
        for (const AgentEvent& event : events) {
            if (const auto* refusal = std::get_if<ReportRefused>(&event)) {
                found.push_back(refusal->text);
            }
        }
        return found;
    }

    RunDir dir;
    ReportServer server;
    std::vector<AgentEvent> events;
};

inline std::string report_of(int step) {
    return "{\"type\":\"report\",\"metrics\":{\"step\":" + std::to_string(step) + "}}\n";
}

}  // namespace muster
