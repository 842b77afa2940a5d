// SPDX-License-Identifier: Apache-2.0
//
// report_listener - the real report server for tests in other languages. Prints the socket's path,
// then what arrives, a JSON line each. Checkpoints are kept in the directory checkpoints beside the
// socket. Takes "stop", "warn" and "refuse" (checkpoints from now on) on stdin; at its end the
// member is drained. It serves trial 00042, attempt 1.7, and leaves by itself after two minutes.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
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

bool refuses = false;

/// False at the end of stdin.
bool obey(ReportServer& server) {
    char bytes[64];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) {
        return false;
    }
    const std::string_view word(bytes, static_cast<std::size_t>(count) - 1);
    if (word == "stop") {
        server.tell_stop(kMember);
    } else if (word == "warn") {
        server.tell_warning(kMember, std::chrono::seconds{120});
    } else {
        refuses = true;
    }
    std::printf("{\"%.*s\": true}\n", static_cast<int>(word.size()), word.data());
    std::fflush(stdout);
    return true;
}

void keep_checkpoints(ReportServer& server, const std::filesystem::path& directory) {
    static int number = 0;
    for (const ReportServer::CheckpointAsked& asked : server.take_checkpoints()) {
        if (refuses) {
            server.refuse_checkpoint(asked.ticket, "the disk is full");
            continue;
        }
        const std::string name = "checkpoint_00000" + std::to_string(++number);
        std::filesystem::rename(directory / asked.line.path, directory / name);
        std::printf("{\"checkpoint\": %g}\n", asked.line.step.value_or(-1));
        server.answer_checkpoint(asked.ticket, name);
    }
    std::fflush(stdout);
}

void serve(ReportServer& server, const std::filesystem::path& directory) {
    server.expect(kMember, R"({"lr": 0.1, "augment": {"flip": true}})");
    std::printf("%s\n", server.socket_path().c_str());
    std::fflush(stdout);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
        pollfd entries[] = {{server.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        ::poll(entries, 2, 1000);
        print(server.receive());
        keep_checkpoints(server, directory);
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
        serve(*server, std::filesystem::path(dir) / "checkpoints");
    }
    std::filesystem::remove_all(std::filesystem::path(dir) / "checkpoints");
    return ::rmdir(dir) == 0 ? 0 : 1;
}
