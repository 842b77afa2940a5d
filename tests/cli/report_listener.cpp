// SPDX-License-Identifier: Apache-2.0
//
// report_listener - the real report server for tests in other languages. Prints the socket's path,
// then what arrives, a JSON line each. Takes "stop" on stdin; at its end the member is drained.
// It serves trial 00042, attempt 1.7, and leaves by itself after two minutes.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "report/report_server.hpp"

namespace {

using namespace muster;  // NOLINT(google-build-using-namespace): a program of its own

constexpr MemberKey kMember{TrialId{42}, AttemptId{1, 7}, MemberId{0}};
constexpr std::chrono::seconds kPatience{120};

void print(const std::vector<AgentEvent>& events) {
    for (const AgentEvent& event : events) {
        if (const auto* report = std::get_if<ReportArrived>(&event)) {
            std::printf("{\"report\": %s}\n", to_json(Value(report->metrics)).c_str());
        } else if (const auto* refusal = std::get_if<ReportRefused>(&event)) {
            std::printf("{\"refused\": %s}\n", to_json(Value(refusal->text)).c_str());
        }
    }
    std::fflush(stdout);
}

/// False at the end of stdin.
bool obey(ReportServer& server) {
    char bytes[64];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0 && std::string_view(bytes, static_cast<std::size_t>(count)) == "stop\n") {
        server.tell_stop(kMember);
        std::puts("{\"stop\": true}");
        std::fflush(stdout);
    }
    return count > 0;
}

void serve(ReportServer& server) {
    server.expect(kMember, R"({"lr": 0.1, "augment": {"flip": true}})");
    std::printf("%s\n", server.socket_path().c_str());
    std::fflush(stdout);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
        pollfd entries[] = {{server.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        ::poll(entries, 2, 1000);
        print(server.receive());
        if (entries[1].revents != 0 && !obey(server)) {
            break;
        }
    }
    print(server.drain(kMember));
}

}  // namespace

int main() {
    char dir[] = "/tmp/muster-listener-XXXXXX";
    if (::mkdtemp(dir) == nullptr) {
        return 1;
    }
    {
        Result<ReportServer> server = ReportServer::listen(dir);
        if (!server) {
            std::fprintf(stderr, "%s\n", server.error().message.c_str());
            return 1;
        }
        serve(*server);
    }
    return ::rmdir(dir) == 0 ? 0 : 1;
}
