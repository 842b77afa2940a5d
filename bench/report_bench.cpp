// SPDX-License-Identifier: Apache-2.0
//
// report_bench - reports through the socket, from a client process to agent events: how many a
// second, and what one costs the agent's process in CPU time. Median of five runs and their
// deviation, for a client that writes many lines at once, for muster/trial.hpp (a system call or
// two a report), and for reports that wait for their decision.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <variant>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster/trial.hpp"

#include "report/report_server.hpp"

namespace {

using namespace muster;  // NOLINT(google-build-using-namespace): a program of its own

constexpr MemberKey kMember{TrialId{42}, AttemptId{1, 7}, MemberId{0}};
constexpr int kRuns = 5;

/// Speaks as the trial; in a child process.
using ClientBody = void (*)(const std::string& socket, int reports);

void send_in_batches(const std::string& socket, int reports) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(socket.begin(), socket.end(), address.sun_path);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return;
    }
    std::string lines =
        "{\"type\": \"hello\", \"protocol\": 1, \"trial\": \"00042\", \"attempt\": \"1.7\"}\n";
    for (int step = 0; step < reports; ++step) {
        lines += "{\"type\": \"report\", \"metrics\": {\"step\": " + std::to_string(step) +
                 ", \"loss\": 0.31415926, \"accuracy\": 0.9765625}}\n";
        if (lines.size() > 60'000 || step + 1 == reports) {
            if (::write(fd, lines.data(), lines.size()) < 0) {
                return;
            }
            lines.clear();
        }
    }
}

void send_one_by_one(const std::string& /*socket*/, int reports) {
    trial::Reporter reporter;
    for (int step = 0; step < reports; ++step) {
        reporter.report({{"step", step}, {"loss", 0.31415926}, {"accuracy", 0.9765625}});
    }
}

void send_and_wait(const std::string& /*socket*/, int reports) {
    trial::Reporter reporter;
    for (int step = 0; step < reports; ++step) {
        reporter.report_and_wait({{"step", step}, {"loss", 0.31415926}});
    }
}

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Sample {
    double reports_per_second = 0;
    double microseconds_each = 0;
};

Sample run_once(ReportServer& server, ClientBody body, int reports) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_seconds();
    const pid_t child = ::fork();
    if (child == 0) {
        body(server.socket_path(), reports);
        ::_exit(0);
    }
    int arrived = 0;
    const auto deadline = begin + std::chrono::seconds(60);
    while (arrived < reports && std::chrono::steady_clock::now() < deadline) {
        pollfd entry{server.fd(), POLLIN, 0};
        ::poll(&entry, 1, 1000);
        for (const AgentEvent& event : server.receive()) {
            arrived += std::holds_alternative<ReportArrived>(event) ? 1 : 0;
        }
    }
    const double cpu = cpu_seconds() - cpu_begin;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    // The last decision is owed still.
    server.receive();
    ::waitpid(child, nullptr, 0);
    server.receive();
    return {arrived / wall.count(), cpu / std::max(arrived, 1) * 1e6};
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void measure(ReportServer& server, const char* name, ClientBody body, int reports) {
    run_once(server, body, reports / 10);
    std::vector<double> rates;
    std::vector<double> costs;
    for (int run = 0; run < kRuns; ++run) {
        const Sample sample = run_once(server, body, reports);
        rates.push_back(sample.reports_per_second);
        costs.push_back(sample.microseconds_each);
    }
    const double rate = median(rates);
    std::vector<double> deviations;
    deviations.reserve(rates.size());
    for (const double one : rates) {
        deviations.push_back(std::abs(one - rate));
    }
    std::printf(
        "%-28s %10.0f reports/s (MAD %.0f)  %6.2f us CPU each\n",
        name,
        rate,
        median(deviations),
        median(costs)
    );
}

}  // namespace

int main() {
    char dir[] = "/tmp/muster-report-bench-XXXXXX";
    if (::mkdtemp(dir) == nullptr) {
        return 1;
    }
    {
        Result<ReportServer> server = ReportServer::listen(dir);
        if (!server) {
            std::fprintf(stderr, "%s\n", server.error().message.c_str());
            return 1;
        }
        server->expect(kMember, "{}");
        // NOLINTBEGIN(concurrency-mt-unsafe): one thread
        ::setenv("MUSTER_SOCKET", server->socket_path().c_str(), 1);
        ::setenv("MUSTER_TRIAL_ID", "00042", 1);
        ::setenv("MUSTER_ATTEMPT", "1.7", 1);
        // NOLINTEND(concurrency-mt-unsafe)
        measure(*server, "many lines in a write", send_in_batches, 500'000);
        measure(*server, "muster/trial.hpp", send_one_by_one, 200'000);
        measure(*server, "waiting for each decision", send_and_wait, 20'000);
    }
    return ::rmdir(dir) == 0 ? 0 : 1;
}
