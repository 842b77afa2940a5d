// SPDX-License-Identifier: Apache-2.0
//
// function_bench - trials that are a function which does nothing, against a bare loop of fork,
// _exit and wait in the same process, as many at once.
//
// Both by turns, in one run. Of muster a whole fit() is measured, its start, its journal and its
// end included. Prints trials a second of each round and the ratio of the medians.
//
//     function_bench [trials a round] [slots] [rounds]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <muster/muster.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

std::size_t number(int argc, char** argv, int at, std::size_t fallback) {
    return argc > at ? std::strtoul(argv[at], nullptr, 10) : fallback;
}

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

void fork_one() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(0);
    }
    if (pid < 0) {
        std::perror("fork");
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
}

double seconds_of_bare_loop(std::size_t trials, std::size_t slots) {
    const Clock::time_point begin = Clock::now();
    std::size_t started = 0;
    for (; started < std::min(slots, trials); ++started) {
        fork_one();
    }
    for (std::size_t ended = 0; ended < trials; ++ended) {
        ::wait(nullptr);
        if (started < trials) {
            fork_one();
            ++started;
        }
    }
    return seconds_since(begin);
}

double seconds_of_fit(muster::Session& session, const std::string& directory, std::size_t trials) {
    muster::ExperimentSpec spec;
    spec.name = "function_bench";
    spec.num_samples = static_cast<std::int64_t>(trials);
    spec.trial.function = "nothing";
    spec.space = {{muster::space::uniform("x", 0, 1)}};
    spec.storage_path = directory;
    muster::Tuner tuner{session, spec};
    const Clock::time_point begin = Clock::now();
    const muster::ResultGrid results = muster::or_exit(tuner.fit());
    const double seconds = seconds_since(begin);
    if (results.exit_code() != 0 || results.size() != trials) {
        std::fprintf(stderr, "not all trials were completed\n");
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    std::filesystem::remove_all(directory);
    return seconds;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t trials = number(argc, argv, 1, 4000);
    const std::size_t slots = number(argc, argv, 2, 16);
    const std::size_t rounds = number(argc, argv, 3, 5);
    muster::SessionOptions options;
    options.node_resources = "cpu=" + std::to_string(slots);
    options.quiet = true;
    int none = 1;
    muster::Session session{none, argv, {{"nothing", [](muster::TrialContext&) {}}}, options};

    const std::string directory = "/dev/shm/muster-function-bench-" + std::to_string(::getpid());
    const auto count = static_cast<double>(trials);
    std::vector<double> bare;
    std::vector<double> fits;
    // The first round warms up and does not count.
    for (std::size_t round = 0; round <= rounds; ++round) {
        const double b = count / seconds_of_bare_loop(trials, slots);
        const double f = count / seconds_of_fit(session, directory, trials);
        std::printf("bare %.0f/s  fit %.0f/s\n", b, f);
        if (round > 0) {
            bare.push_back(b);
            fits.push_back(f);
        }
    }
    std::printf("median ratio: %.2f\n", median(fits) / median(bare));
    return 0;
}
