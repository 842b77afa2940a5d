// SPDX-License-Identifier: Apache-2.0
//
// transport_bench - what messages between ranks cost. To be started by mpirun with 2 to 4 ranks.
// Rank 0 measures and prints. The baseline is the same loop without its waiting: it spins.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/launcher.hpp"
#include "transport/mpi_world.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReport = 200;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto as_seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return as_seconds(usage.ru_utime) + as_seconds(usage.ru_stime);
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// A rank's loop, as runtime/ has it.
class Loop {
  public:
    explicit Loop(Transport& transport) : transport_(transport) {}

    Transport& transport() { return transport_; }
    std::uint32_t size() const { return transport_.size(); }

    /// What has come in; then waits for more, or not at all.
    std::vector<ReceivedMessage> turn(bool wait, Duration longest = std::chrono::seconds{1}) {
        std::vector<ReceivedMessage> messages = transport_.receive(true);
        if (wait && messages.empty()) {
            longest = std::min(longest, transport_.longest_wait());
            const timespec time{
                longest / std::chrono::seconds{1}, (longest % std::chrono::seconds{1}).count()};
            fds_.clear();
            transport_.add_poll_fds(fds_);
            if (::ppoll(fds_.data(), fds_.size(), &time, nullptr) >= 0) {
                transport_.polled(fds_);
            }
        }
        return messages;
    }

    /// Those messages whole that come in until there are `count`.
    std::size_t receive(std::size_t count, bool wait) {
        std::size_t bytes = 0;
        while (count > 0) {
            for (const ReceivedMessage& message : turn(wait)) {
                bytes += message.bytes.size();
                --count;
            }
        }
        return bytes;
    }

    void tell_all(const std::string& word) {
        for (std::uint32_t rank = 1; rank < size(); ++rank) {
            transport_.send(rank, Lane::Control, word);
        }
    }

  private:
    Transport& transport_;
    std::vector<pollfd> fds_;
};

/// Does what rank 0 asks: sends messages ("m", small ones, "l", long ones, and how many), or turns
/// to waiting ("w") or spinning ("s"); all but the first two are answered with themselves.
void obey(Loop& loop, std::string word, bool& wait) {
    const char kind = word.empty() ? ' ' : word.front();
    if (kind == 'w' || kind == 's') {
        wait = kind == 'w';
    }
    if (kind != 'm' && kind != 'l') {
        loop.transport().send(0, Lane::Control, std::move(word));
        return;
    }
    const long count = std::strtol(word.c_str() + 1, nullptr, 10);
    for (long i = 0; i < count; ++i) {
        loop.transport().send(0, Lane::Bulk, std::string(kind == 'm' ? kReport : kMiB, 'x'));
    }
}

/// Obeys until rank 0 says "end".
void serve(Loop& loop) {
    bool wait = true;
    while (true) {
        for (ReceivedMessage& message : loop.turn(wait)) {
            if (message.bytes == "end") {
                return;
            }
            obey(loop, std::move(message.bytes), wait);
        }
    }
}

void measure_latency(Loop& loop, bool wait) {
    loop.tell_all(wait ? "w" : "s");
    loop.receive(loop.size() - 1, wait);
    std::vector<double> times;
    for (int i = 0; i < 3'000; ++i) {
        const Clock::time_point begin = Clock::now();
        loop.transport().send(1, Lane::Control, std::string(kReport, 'p'));
        loop.receive(1, wait);
        times.push_back(seconds_since(begin) / 2);
    }
    std::printf(
        "one way, %s: median %.0f us, 99th percentile %.0f us\n",
        wait ? "waiting" : "spinning",
        quantile(times, 0.5) * 1e6,
        quantile(times, 0.99) * 1e6
    );
    loop.tell_all("w");
    loop.receive(loop.size() - 1, true);
}

void measure_rate(Loop& loop, char kind, std::size_t count) {
    const Clock::time_point begin = Clock::now();
    loop.tell_all(kind + std::to_string(count));
    const std::size_t bytes = loop.receive(count * (loop.size() - 1), true);
    const double seconds = seconds_since(begin);
    std::printf(
        "%s from %u ranks at once: %.0f a second, %.0f MB/s\n",
        kind == 'm' ? "200 bytes" : "1 MiB",
        loop.size() - 1,
        static_cast<double>(count * (loop.size() - 1)) / seconds,
        static_cast<double>(bytes) / seconds * 1e-6
    );
}

/// How long a control message and its answer take while the ranks send bulk as fast as they can.
void measure_control_under_load(Loop& loop) {
    const std::size_t count = 200'000;
    std::size_t left = count * (loop.size() - 1);
    loop.tell_all("m" + std::to_string(count));
    std::vector<double> times;
    while (left > 0) {
        const Clock::time_point begin = Clock::now();
        loop.transport().send(1, Lane::Control, "p");
        for (bool answered = false; !answered;) {
            for (const ReceivedMessage& message : loop.turn(true)) {
                const bool bulk = message.lane == Lane::Bulk;
                left -= bulk ? 1 : 0;
                answered = answered || !bulk;
            }
        }
        times.push_back(seconds_since(begin));
    }
    std::printf(
        "question and answer under that load: median %.0f us, 99th percentile %.0f us (%zu)\n",
        quantile(times, 0.5) * 1e6,
        quantile(times, 0.99) * 1e6,
        times.size()
    );
}

/// A heartbeat a second from each rank, answered by rank 0.
void measure_idle(Loop& loop, bool first) {
    const Clock::time_point begin = Clock::now();
    const double cpu = cpu_seconds();
    Clock::time_point next = begin;
    while (seconds_since(begin) < 5) {
        if (!first && Clock::now() >= next) {
            loop.transport().send(0, Lane::Control, "heartbeat");
            next += std::chrono::seconds{1};
        }
        for (const ReceivedMessage& message : loop.turn(true, std::chrono::milliseconds{500})) {
            if (first) {
                loop.transport().send(message.from, Lane::Control, "alive");
            }
        }
    }
    std::printf(
        "idle, rank %u: %.2f %% of a core\n",
        loop.transport().rank(),
        100 * (cpu_seconds() - cpu) / seconds_since(begin)
    );
}

int run() {
    const Result<Launcher> launcher = find_launcher(::environ);
    if (!launcher.ok() || *launcher == Launcher::None) {
        std::fprintf(stderr, "start it by: mpirun -n 4 --bind-to none transport_bench\n");
        return 2;
    }
    Result<std::unique_ptr<MpiWorld>> world = MpiWorld::join();
    if (!world.ok() || (*world)->size() < 2) {
        std::fprintf(stderr, "it needs at least 2 ranks\n");
        return 2;
    }
    Loop loop((*world)->transport());
    if ((*world)->rank() == 0) {
        loop.tell_all("w");
        loop.receive(loop.size() - 1, true);
        measure_latency(loop, false);
        measure_latency(loop, true);
        measure_rate(loop, 'm', 200'000);
        measure_rate(loop, 'l', 100);
        measure_control_under_load(loop);
        loop.tell_all("end");
    } else {
        serve(loop);
    }
    measure_idle(loop, (*world)->rank() == 0);
    (*world)->finalize(1);
    return 0;
}

}  // namespace
}  // namespace muster

int main() {
    return muster::run();
}
