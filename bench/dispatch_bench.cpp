// SPDX-License-Identifier: Apache-2.0
//
// dispatch_bench - what dispatching costs: the head alone, a waiting trial's memory, and `muster
// run` with trials of /bin/true against a bare loop that does the same work on files.
//
//   dispatch_bench [head] [memory] [commands] [sleeps]      (all without arguments)
//
// The figures are medians of repeated runs; those of programs are ratios within one run.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "head/head.hpp"
#include "head/trial.hpp"
#include "search/searcher.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
    const Clock::time_point start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

ExperimentSpec bench_spec() {
    ExperimentSpec spec;
    spec.name = "bench";
    spec.objective = ObjectiveSpec{"loss", Mode::Min};
    spec.space.parameters = {
        {"lr", RealDomain{1e-4, 1e-1, 0, true}, {}},
        {"hidden", Choice{{32, 64, 128}}, {}},
        {"momentum", RealDomain{0, 1, 0, false}, {}},
        {"optimizer", Choice{{"sgd", "adam"}}, {}},
        {"epochs", Constant{20}, {}}};
    return spec;
}

NodeInventory bench_node(std::int64_t cpus) {
    NodeInventory node{.name = "node", .cpu = Amount::whole(cpus)};
    node.cores.resize(static_cast<std::size_t>(cpus));
    return node;
}

/// Plays the loop, the node and the searcher for a head: carries out its commands and ends its
/// trials, one after the other, each with one report.
class HeadDriver {
  public:
    explicit HeadDriver(std::uint32_t trials)
        : spec_(bench_spec()),
          searcher_(BasicSearcher::make(spec_.space, {}, trials, 1)),
          head_(spec_, {}, trials) {}

    void run() {
        tell(Reconcile{});
        tell(AgentSaid{NodeId{0}, Hello{1, bench_node(16)}});
        while (!running_.empty()) {
            const MemberKey key = running_.back();
            running_.pop_back();
            tell(AgentSaid{NodeId{0}, Reported{key, {1, {{"loss", 0.5}}}, 0}});
            tell(AgentSaid{NodeId{0}, Ended{key, {}, {}}});
        }
    }

  private:
    void tell(const Event& event) {
        const Step step = head_.handle(event, {});
        for (const Command& command : step.commands) {
            carry_out(command.action);
        }
    }

    void carry_out(const Action& action) {
        if (const Ask* ask = std::get_if<Ask>(&action)) {
            Result<Suggestion> suggestion = searcher_->suggest(ask->count);
            tell(Suggested{std::move(suggestion->configs), suggestion->exhausted});
        } else if (const Send* send = std::get_if<Send>(&action)) {
            if (const Start* start = std::get_if<Start>(&send->message)) {
                running_.push_back(start->key);
            }
        }
    }

    ExperimentSpec spec_;
    Result<BasicSearcher> searcher_;
    Head head_;
    std::vector<MemberKey> running_;
};

/// Trials a second through a head alone, on 16 slots.
double head_rate(std::uint32_t trials) {
    HeadDriver driver(trials);
    return trials / seconds_of([&] { driver.run(); });
}

void bench_head() {
    std::printf("head alone, one report a trial (16 slots)\n");
    for (const std::uint32_t trials : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
        std::vector<double> rates;
        rates.reserve(5);
        for (int run = 0; run < (trials > 100'000 ? 3 : 5); ++run) {
            rates.push_back(head_rate(trials));
        }
        std::printf("  %8u trials   %9.0f trials/s\n", trials, median(rates));
    }
}

void bench_memory() {
    constexpr std::uint32_t kTrials = 200'000;
    const ExperimentSpec spec = bench_spec();
    Result<BasicSearcher> searcher = BasicSearcher::make(spec.space, {}, kTrials, 1);
    Head head(spec, {}, kTrials);
    head.handle(Reconcile{}, {});
    head.handle(AgentSaid{NodeId{0}, Hello{1, bench_node(16)}}, {});
    const std::size_t before = mallinfo2().uordblks;
    Suggested all{searcher->suggest(kTrials)->configs, true};
    head.handle(all, {});
    all = {};
    const std::size_t after = mallinfo2().uordblks;
    std::printf(
        "memory of a waiting trial (5 keys): %.0f bytes\n",
        static_cast<double>(after - before) / kTrials
    );
}

void write_file(const fs::path& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        if (::write(fd, text.data(), text.size()) < 0) {
            std::perror("write");
        }
        ::close(fd);
    }
}

bool start_bare_trial(const fs::path& own) {
    fs::create_directory(own);
    write_file(own / "params.json", R"({"lr": 0.001, "hidden": 64})");
    write_file(own / "output", "\n");
    pid_t pid = 0;
    char name[] = "/bin/true";
    char* argv[] = {name, nullptr};
    return ::posix_spawn(&pid, name, nullptr, nullptr, argv, environ) == 0;
}

/// mkdir, two small files, posix_spawn, waitpid, with so many at once.
double bare_loop(const fs::path& directory, int trials, int slots) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    return seconds_of([&] {
        int started = 0;
        int running = 0;
        while (started < trials || running > 0) {
            if (started < trials && running < slots) {
                running += start_bare_trial(directory / std::to_string(started++)) ? 1 : 0;
            } else if (::waitpid(-1, nullptr, 0) > 0) {
                --running;
            }
        }
    });
}

fs::path muster_program() {
    const char* given = std::getenv("MUSTER");  // NOLINT(concurrency-mt-unsafe)
    return given != nullptr
               ? fs::path(given)
               : fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "muster";
}

/// `muster run` of a spec with `command`; nothing when it failed.
std::optional<double>
muster_run(const fs::path& directory, const std::string& command, int trials, int slots) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    std::ofstream(directory / "bench.yaml")
        << "name: bench\nnum_samples: " << trials << "\ntrial: {command: " << command
        << ", trial_dir: always}\nspace: {lr: {loguniform: [1.0e-4, 0.1]}, hidden: {choice: [32, "
           "64]}}\n"
        << "storage: {path: " << (directory / "results").string() << "}\n";
    const std::string line = muster_program().string() + " run " +
                             (directory / "bench.yaml").string() +
                             " --plain --node-resources cpu=" + std::to_string(slots) + " > " +
                             (directory / "log").string() + " 2>&1";
    int status = 0;
    const double took =
        seconds_of([&] { status = std::system(line.c_str()); });  // NOLINT(concurrency-mt-unsafe)
    if (status != 0) {
        std::printf("  muster failed: see %s\n", (directory / "log").c_str());
        return std::nullopt;
    }
    return took;
}

void bench_commands(const fs::path& directory) {
    constexpr int kTrials = 4'000;
    constexpr int kSlots = 16;
    std::printf("%d command trials of /bin/true on %d slots, pairs of runs\n", kTrials, kSlots);
    std::vector<double> ratios;
    bare_loop(directory / "warm", kTrials / 4, kSlots);
    for (int pair = 0; pair < 5; ++pair) {
        const double bare = bare_loop(directory / "bare", kTrials, kSlots);
        const std::optional<double> with =
            muster_run(directory / "muster", "[/bin/true]", kTrials, kSlots);
        if (!with) {
            return;
        }
        ratios.push_back(bare / *with);
        std::printf(
            "  bare loop %7.0f/s   muster %7.0f/s   ratio %.2f\n",
            kTrials / bare,
            kTrials / *with,
            ratios.back()
        );
    }
    std::printf("  median ratio %.2f (start and end of the program included)\n", median(ratios));
}

void bench_sleeps(const fs::path& directory) {
    constexpr int kTrials = 1'600;
    constexpr int kSlots = 16;
    const double ideal = kTrials * 0.1 / kSlots;
    std::vector<double> over;
    for (int run = 0; run < 3; ++run) {
        const std::optional<double> took =
            muster_run(directory / "sleeps", "[sleep, \"0.1\"]", kTrials, kSlots);
        if (!took) {
            return;
        }
        over.push_back((*took / ideal - 1) * 100);
    }
    std::printf(
        "%d trials of 0.1 s on %d slots: %.1f %% over the ideal %.0f s (median of 3)\n",
        kTrials,
        kSlots,
        median(over),
        ideal
    );
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    const std::vector<std::string> wanted(argv + 1, argv + argc);
    const auto is_wanted = [&](const char* name) {
        return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    };
    // Memory, so that the disk's mood is in none of the figures; MUSTER_BENCH_DIR says otherwise.
    const char* given = std::getenv("MUSTER_BENCH_DIR");  // NOLINT(concurrency-mt-unsafe)
    std::string pattern =
        std::string(given != nullptr ? given : "/dev/shm") + "/muster-bench-XXXXXX";
    const char* made = ::mkdtemp(pattern.data());
    if (made == nullptr) {
        std::perror("mkdtemp");
        return 1;
    }
    const std::filesystem::path directory(made);
    if (is_wanted("head")) {
        muster::bench_head();
    }
    if (is_wanted("memory")) {
        muster::bench_memory();
    }
    if (is_wanted("commands")) {
        muster::bench_commands(directory);
    }
    if (is_wanted("sleeps")) {
        muster::bench_sleeps(directory);
    }
    std::filesystem::remove_all(directory);
    return 0;
}
