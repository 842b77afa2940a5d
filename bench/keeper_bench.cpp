// SPDX-License-Identifier: Apache-2.0
//
// keeper_bench - launches of /bin/true by keepers against a bare loop of posix_spawn and waitpid.
//
// Both do the same work on files, in one run, by turns: a directory and two small files a trial,
// as many at once. Prints launches a second of each round and the ratio of the medians. A third
// way does what muster does for a trial that writes nothing: one node-local file, removed after.
//
//     keeper_bench [trials a round] [slots] [rounds] [directory]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/environment.hpp"
#include "process/processes.hpp"

namespace {

using muster::LaunchPlan;
using Clock = std::chrono::steady_clock;

struct Load {
    std::size_t trials = 4000;
    std::size_t slots = 16;
};

std::string trial_directory(const std::string& root, std::size_t trial) {
    return root + "/" + std::to_string(trial);
}

void write_small_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t wrote = ::write(fd, "{\"lr\": 0.1}\n", 12);
    ::close(fd);
}

void spawn_bare(const std::string& root, std::size_t trial) {
    const std::string directory = trial_directory(root, trial);
    ::mkdir(directory.c_str(), 0700);
    write_small_file(directory + "/params.json");
    write_small_file(directory + "/output");
    char program[] = "/bin/true";
    char* argv[] = {program, nullptr};
    pid_t pid = 0;
    ::posix_spawn(&pid, program, nullptr, nullptr, argv, environ);
}

double seconds_of_bare_loop(const std::string& root, Load load) {
    const Clock::time_point begin = Clock::now();
    std::size_t started = 0;
    for (; started < std::min(load.slots, load.trials); ++started) {
        spawn_bare(root, started);
    }
    for (std::size_t ended = 0; ended < load.trials; ++ended) {
        ::wait(nullptr);
        if (started < load.trials) {
            spawn_bare(root, started++);
        }
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

LaunchPlan plan_of(const std::string& root, std::size_t trial, bool same_files) {
    static std::uint32_t attempts = 0;
    LaunchPlan plan;
    plan.key.trial.value = static_cast<std::uint32_t>(trial);
    plan.key.attempt = {1, attempts++};
    plan.argv = {"/bin/true"};
    plan.workdir = root;
    plan.trial_dir = trial_directory(root, trial);
    plan.output_path = plan.trial_dir + "/output";
    plan.grace = std::chrono::seconds{10};
    plan.env = {{"MUSTER_TRIAL_ID", std::to_string(trial)}, {"MUSTER_TRIAL_DIR", plan.trial_dir}};
    if (same_files) {
        plan.make_trial_dir = true;
        plan.files = {
            {plan.trial_dir + "/params.json", "{\"lr\": 0.1}\n"},
            {plan.trial_dir + "/other", "{\"lr\": 0.1}\n"}};
    } else {
        const std::string params = root + "/params-" + std::to_string(trial) + ".json";
        plan.files = {{params, "{\"lr\": 0.1}\n"}};
        plan.remove_at_end = params;
    }
    return plan;
}

/// 1 for the end of a trial. Leaves the program when a trial did not end as it should.
std::size_t count_end(const muster::AgentEvent& event) {
    const auto* end = std::get_if<muster::MemberEnded>(&event);
    if (end == nullptr) {
        return 0;
    }
    if (end->outcome != muster::Outcome{}) {
        std::fprintf(stderr, "%s\n", muster::to_string(end->outcome).c_str());
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    return 1;
}

double seconds_of_keepers(
    muster::Processes& processes,
    const std::string& root,
    Load load,
    bool same_files
) {
    const Clock::time_point begin = Clock::now();
    std::size_t started = 0;
    std::size_t ended = 0;
    while (ended < load.trials) {
        while (started < load.trials && processes.running() < load.slots) {
            processes.launch(plan_of(root, started++, same_files));
        }
        pollfd poll_fd{.fd = processes.fd(), .events = POLLIN, .revents = 0};
        ::poll(&poll_fd, 1, 10'000);
        for (const muster::AgentEvent& event : processes.receive()) {
            ended += count_end(event);
        }
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::size_t number(const char* text) {
    return std::strtoul(text, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
    muster::Result<muster::Spawner> spawner = muster::Spawner::start();
    if (!spawner) {
        std::fprintf(stderr, "%s\n", spawner.error().message.c_str());
        return 1;
    }
    muster::Processes processes(
        std::move(spawner).value(),
        muster::trial_base_environment(muster::current_environment(), {})
    );
    Load load;
    load.trials = argc > 1 ? number(argv[1]) : load.trials;
    load.slots = argc > 2 ? number(argv[2]) : load.slots;
    const std::size_t rounds = argc > 3 ? number(argv[3]) : 5;
    std::string root = std::string(argc > 4 ? argv[4] : "/tmp") + "/muster-keeper-bench-XXXXXX";
    if (::mkdtemp(root.data()) == nullptr) {
        std::perror("mkdtemp");
        return 1;
    }
    std::vector<double> bare;
    std::vector<double> same;
    std::vector<double> silent;
    const auto trials = static_cast<double>(load.trials);
    // The first round warms up and does not count.
    for (std::size_t round = 0; round <= rounds; ++round) {
        const auto in_empty_directory = [&](auto work) {
            const std::string directory = root + "/r";
            ::mkdir(directory.c_str(), 0700);
            const double rate = trials / work(directory);
            std::filesystem::remove_all(directory);
            return rate;
        };
        const double b = in_empty_directory([&](const std::string& directory) {
            return seconds_of_bare_loop(directory, load);
        });
        const double k = in_empty_directory([&](const std::string& directory) {
            return seconds_of_keepers(processes, directory, load, true);
        });
        const double s = in_empty_directory([&](const std::string& directory) {
            return seconds_of_keepers(processes, directory, load, false);
        });
        std::printf("bare %.0f/s  keepers %.0f/s  keepers, silent trials %.0f/s\n", b, k, s);
        if (round > 0) {
            bare.push_back(b);
            same.push_back(k);
            silent.push_back(s);
        }
    }
    std::printf(
        "median ratio: same files %.2f, silent trials %.2f\n",
        median(same) / median(bare),
        median(silent) / median(bare)
    );
    std::filesystem::remove_all(root);
    return 0;
}
