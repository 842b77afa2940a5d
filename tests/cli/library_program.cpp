// SPDX-License-Identifier: Apache-2.0
//
// library_program - a program of a user's with functions as trials, for library_test.py: what it
// prints is what the test looks at. The first word of its arguments says what it does.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "muster/muster.hpp"

// The library brings it along; its header is none of this program's business.
extern "C" int MPI_Init(int* argc, char*** argv);  // NOLINT(readability-identifier-naming)

namespace {

using muster::TrialContext;

void quadratic(TrialContext& context) {
    const auto x = context.get<double>("x");
    for (int step = 1; step <= 3; ++step) {
        context.report(step, {{"loss", x * x + 1.0 / step}});
    }
}

/// One way to end for each trial.
void ends(TrialContext& context) {
    const auto how = context.get<std::string>("how");
    context.report(1, {{"loss", 1.0}});
    std::printf("a line of %s\n", how.c_str());
    if (how == "throw") {
        throw std::runtime_error("the matrix is singular");
    }
    if (how == "throw-int") {
        throw 7;  // NOLINT: what is no exception must end well too
    }
    if (how == "exit") {
        std::exit(3);  // NOLINT(concurrency-mt-unsafe)
    }
    if (how == "crash") {
        std::abort();
    }
    if (how == "thread") {
        int sum = 0;
        std::thread adder([&sum] { sum = 42; });
        adder.join();
        context.report(2, {{"loss", sum}});
    }
}

/// How many descriptors are open besides 0, 1 and 2.
int open_descriptors() {
    int count = 0;
    DIR* directory = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe)
        const int fd = std::atoi(entry->d_name);
        count += entry->d_name[0] != '.' && fd > 2 && fd != ::dirfd(directory) ? 1 : 0;
    }
    ::closedir(directory);
    return count;
}

void surroundings(TrialContext& context) {
    const char* variable = std::getenv("MUSTER_TRIAL_ID");  // NOLINT(concurrency-mt-unsafe)
    const bool is_leader = ::getpgrp() == ::getpid();
    context.report(
        1,
        {{"descriptors", open_descriptors()},
         {"leader", is_leader},
         {"id", context.id() == (variable == nullptr ? "" : variable)},
         {"seed", static_cast<double>(context.seed())},
         {"bundles", static_cast<int>(context.bundles().size())}}
    );
}

/// Reports how many cores it was given.
void asks(TrialContext& context) {
    const std::size_t cores = context.bundles().front().cores.size();
    context.report(1, {{"loss", static_cast<double>(cores)}});
}

/// Reports how many threads OpenMP takes.
void openmp(TrialContext& context) {
    int threads = -1;
#ifdef _OPENMP
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
    }
#endif
    context.report(1, {{"loss", static_cast<double>(threads)}});
}

/// Saves what it has come to, fails once, and goes on from there.
void saves(TrialContext& context) {
    int step = 0;
    if (!context.resume_dir().empty()) {
        std::ifstream(context.resume_dir() + "/step") >> step;
    }
    const bool is_first = step == 0;
    while (++step <= 4) {
        context.report(step, {{"loss", 1.0 / step}});
        if (is_first && step == 3) {
            throw std::runtime_error("fails once");
        }
        const std::string directory = context.dir() + "/new";
        std::filesystem::create_directories(directory);
        std::ofstream(directory + "/step") << step;
        if (!context.checkpoint(directory).safe) {
            throw std::runtime_error("the checkpoint is not safe");
        }
    }
}

muster::ExperimentSpec experiment(const std::string& name, const std::string& function) {
    muster::ExperimentSpec spec;
    spec.name = name;
    spec.objective = muster::ObjectiveSpec{"loss", muster::Mode::Min};
    spec.trial.function = function;
    return spec;
}

void tell(const muster::ResultGrid& results) {
    for (const muster::TrialRecord& trial : results) {
        std::printf(
            "%s %s results=%zu %s\n",
            trial.id.c_str(),
            std::string(muster::to_string(trial.status)).c_str(),
            trial.results.size(),
            trial.error.c_str()
        );
    }
    const muster::TrialRecord* best = results.best();
    std::printf(
        "%zu trials, %zu failed, exit %d, best %s\n",
        results.size(),
        results.errors().size(),
        results.exit_code(),
        best == nullptr ? "none" : best->id.c_str()
    );
}

int run(muster::Session& session, std::string_view what) {
    muster::ExperimentSpec spec = experiment(std::string(what), std::string(what));
    if (what == "quadratic") {
        for (const char* name : {"first", "second"}) {
            spec.name = name;
            spec.num_samples = 10;
            spec.space = {{muster::space::uniform("x", -1, 1)}};
            tell(muster::or_exit(muster::Tuner(session, spec).fit()));
        }
        return 0;
    }
    if (what == "ends") {
        spec.space = {{muster::space::grid(
            "how", {"return", "throw", "throw-int", "exit", "crash", "thread"}
        )}};
    }
    if (what == "saves") {
        spec.failures.max_failures = 1;
    }
    if (what == "asks") {
        spec.space = {{muster::space::grid("cores", {1, 2, 100, 3, -1})}};
    }
    if (what == "memory") {
        spec.trial.function = "quadratic";
        spec.space = {{muster::space::constant("x", 0.5)}};
    }
    muster::Tuner tuner(session, spec);
    if (what == "openmp") {
        tuner.with_resources(muster::ResourceRequest{.cpu = 2});
    }
    if (what == "asks") {
        tuner.with_resources([](const muster::Config& config) {
            return muster::ResourceRequest{.cpu = config.number("cores")};
        });
    }
    if (what == "surroundings") {
        tuner.with_resources(muster::ResourceRequest{.cpu = 1, .gpu = 1});
    }
    const muster::ResultGrid results = muster::or_exit(tuner.fit());
    tell(results);
    std::fputs(results.csv().c_str(), stdout);
    return results.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
    const muster::Trainables trainables{
        {"quadratic", quadratic},
        {"ends", ends},
        {"surroundings", surroundings},
        {"saves", saves},
        {"asks", asks},
        {"openmp", openmp}};
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "cli") {
        argv[1] = argv[0];
        return muster::cli_main(argc - 1, argv + 1, trainables);
    }
    std::vector<char> much;
    if (what == "memory") {
        much.assign(300'000'000, 'x');
    }
    if (what == "device" || what == "mpi") {
        [[maybe_unused]] const int device = what == "device"
                                                ? ::open("/dev/nvidia0", O_RDONLY | O_CLOEXEC)
                                                : MPI_Init(&argc, &argv);
        const auto opened = muster::Session::open(argc, argv, trainables);
        std::puts(opened.ok() ? "opened" : opened.error().message.c_str());
        return 0;
    }
    if (what == "threads") {
        std::thread waits([] { ::pause(); });
        waits.detach();
        const auto opened = muster::Session::open(argc, argv, trainables);
        std::puts(opened.ok() ? "opened" : opened.error().message.c_str());
        return 0;
    }
    // What the trials must not inherit.
    const int leak = ::open("/dev/null", O_RDONLY);  // NOLINT: without CLOEXEC, as by mistake
    muster::Session session{argc, argv, trainables};
    if (what == "twice") {
        const auto second = muster::Session::open(argc, argv, trainables);
        std::puts(second.ok() ? "opened" : second.error().message.c_str());
        return 0;
    }
    const int code = run(session, argc > 1 ? argv[1] : "");
    ::close(leak);
    return code;
}
