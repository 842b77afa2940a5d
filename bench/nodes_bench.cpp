// SPDX-License-Identifier: Apache-2.0
//
// nodes_bench - what several ranks cost and can do: `muster run` under mpirun on this machine,
// every rank a node of its own. The program is also the trial that it starts.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "muster/trial.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const auto place = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    return values.empty() ? 0 : values[place];
}

fs::path self() {
    return fs::read_symlink("/proc/self/exe");
}

fs::path muster_program() {
    const char* given = std::getenv("MUSTER");  // NOLINT(concurrency-mt-unsafe)
    return given != nullptr ? fs::path(given)
                            : self().parent_path().parent_path() / "bin" / "muster";
}

// --- the trials ---

/// Reports so many times a second for so long.
int report_trial(double seconds, double rate) {
    const Clock::time_point begin = Clock::now();
    const auto total = static_cast<std::uint64_t>(seconds * rate);
    for (std::uint64_t step = 1; step <= total; ++step) {
        trial::report(static_cast<double>(step), {{"loss", 1.0 / static_cast<double>(step)}});
        std::this_thread::sleep_until(
            begin + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(static_cast<double>(step) / rate)
                    )
        );
    }
    return 0;
}

/// Reports so many times a second until SIGTERM comes, and notes when that was.
int stop_trial(double rate, const fs::path& notes) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
    const timespec interval{0, static_cast<long>(1e9 / rate)};
    for (int step = 1; step < 60 * rate; ++step) {
        trial::report(step, {{"loss", 1.0 / step}});
        if (::sigtimedwait(&term, nullptr, &interval) == SIGTERM) {
            break;
        }
    }
    std::ofstream(notes / trial::id()) << Clock::now().time_since_epoch().count() << "\n";
    return 0;
}

/// Reports for a time of its own, then what the spec's `stop` waits for, and notes how many
/// nanoseconds it took until it was told to stop.
int goal_trial(double rate, const fs::path& notes) {
    const int number = std::stoi(trial::id());
    report_trial(2 + 0.037 * (number % 100), rate);
    const Clock::time_point reported = Clock::now();
    trial::report({{"done", 1}});
    while (!trial::should_stop() && seconds_since(reported) < 5) {
        std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    std::ofstream(notes / trial::id()) << (Clock::now() - reported).count() << "\n";
    return 0;
}

// --- runs ---

struct Job {
    int ranks = 1;
    /// CPUs of each rank.
    int cpus = 1;
    int trials = 1;
    /// YAML: what is under `trial:`, and keys of the spec beside it.
    std::string trial;
    std::string more;
    bool dedicated_head = false;
};

std::string command_line(const fs::path& directory, const Job& job) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    std::ofstream(directory / "bench.yaml")
        << "name: bench\nnum_samples: " << job.trials << "\ntrial: {" << job.trial << "}\n"
        << "space: {lr: {loguniform: [1.0e-4, 0.1]}, hidden: {choice: [32, 64]}}\n"
        << job.more << "storage: {path: " << (directory / "results").string() << "}\n";
    std::string line;
    if (job.ranks > 1) {
        line = "mpirun -n " + std::to_string(job.ranks) +
               " --bind-to none --oversubscribe --enable-recovery ";
    }
    line += muster_program().string() + " run " + (directory / "bench.yaml").string() +
            " --plain --node-resources cpu=" + std::to_string(job.cpus);
    line += job.ranks > 1 ? " --rank-is-node" : "";
    line += job.dedicated_head ? " --dedicated-head" : "";
    return line + " > " + (directory / "log").string() + " 2>&1";
}

/// Seconds from the start of the launcher to its end.
std::optional<double> run(const fs::path& directory, const Job& job) {
    const std::string line = command_line(directory, job);
    const Clock::time_point begin = Clock::now();
    const int status = std::system(line.c_str());  // NOLINT(concurrency-mt-unsafe)
    const double took = seconds_since(begin);
    if (status != 0) {
        std::printf("  muster failed: see %s\n", (directory / "log").c_str());
        return std::nullopt;
    }
    return took;
}

/// The sum and the largest of a column of `muster results`.
struct Column {
    double sum = 0;
    double largest = 0;
};

Column column_of_results(const fs::path& directory, const std::string& name) {
    const fs::path table = directory / "results.csv";
    const std::string line = muster_program().string() + " results " +
                             (directory / "results" / "bench").string() + " --format csv > " +
                             table.string();
    if (std::system(line.c_str()) != 0) {  // NOLINT(concurrency-mt-unsafe)
        return {};
    }
    std::ifstream file(table);
    std::string row;
    std::getline(file, row);
    const std::string before = row.substr(0, row.find(name));
    const auto place = std::count(before.begin(), before.end(), ',');
    Column column;
    while (std::getline(file, row)) {
        std::istringstream cells(row);
        std::string cell;
        for (std::ptrdiff_t index = 0; index <= place; ++index) {
            std::getline(cells, cell, ',');
        }
        column.sum += std::stod(cell);
        column.largest = std::max(column.largest, std::stod(cell));
    }
    return column;
}

/// Rank 0 among the processes whose environment holds `mark`; 0 when it isn't there.
pid_t rank_0(const std::string& mark) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream environment(entry.path() / "environ");
        std::stringstream text;
        text << environment.rdbuf();
        std::string command;
        std::ifstream(entry.path() / "comm") >> command;
        if (command == "muster" && text.str().find(mark) != std::string::npos &&
            text.str().find(std::string("OMPI_COMM_WORLD_RANK=0\0", 23)) != std::string::npos) {
            return std::stoi(entry.path().filename().string());
        }
    }
    return 0;
}

void bench_reports(const fs::path& directory) {
    constexpr int kTrials = 54;
    constexpr double kSeconds = 6;
    constexpr double kRate = 1000;
    const std::string trial = "command: [" + self().string() + ", trial, report, \"" +
                              std::to_string(kSeconds) + "\", \"" + std::to_string(kRate) + "\"]";
    const std::optional<double> took =
        run(directory / "reports",
            {.ranks = 4,
             .cpus = kTrials / 3,
             .trials = kTrials,
             .trial = trial,
             .more = "metric: loss\nmode: min\n",
             .dedicated_head = true});
    if (took) {
        const double kept = column_of_results(directory / "reports", "reports").sum;
        const double seconds = column_of_results(directory / "reports", "seconds").largest;
        std::printf(
            "reports of three ranks into the journal: %.0f kept in %.1f s, %.0f a second (54 "
            "trials "
            "that would make %.0f in %.0f s)\n",
            kept,
            seconds,
            kept / seconds,
            kTrials * kRate * kSeconds,
            kSeconds
        );
    }
}

/// Milliseconds from a SIGINT of rank 0 until each of 54 trials got its SIGTERM.
std::vector<double> stop_once(const fs::path& directory) {
    const fs::path notes = directory / "notes";
    fs::remove_all(notes);
    fs::create_directories(notes);
    const std::string mark = "MUSTER_BENCH_MARK=" + directory.string();
    ::setenv("MUSTER_BENCH_MARK", directory.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    std::thread running([&] {
        run(directory / "stop",
            {.ranks = 4,
             .cpus = 18,
             .trials = 54,
             .trial = "command: [" + self().string() + ", trial, stop, \"1000\", " +
                      notes.string() + "]",
             .more = "metric: loss\nmode: min\n",
             .dedicated_head = true});
    });
    std::this_thread::sleep_for(std::chrono::seconds{4});
    const pid_t head = rank_0(mark);
    const Clock::time_point asked = Clock::now();
    if (head > 0) {
        ::kill(head, SIGINT);
    }
    running.join();
    ::unsetenv("MUSTER_BENCH_MARK");  // NOLINT(concurrency-mt-unsafe)
    std::vector<double> milliseconds;
    for (const auto& entry : fs::directory_iterator(notes)) {
        Clock::rep at = 0;
        std::ifstream(entry.path()) >> at;
        const Clock::duration since = Clock::duration{at} - asked.time_since_epoch();
        milliseconds.push_back(std::chrono::duration<double, std::milli>(since).count());
    }
    return milliseconds;
}

void bench_stop(const fs::path& directory) {
    std::vector<double> milliseconds;
    for (int round = 0; round < 4; ++round) {
        for (const double each : stop_once(directory)) {
            milliseconds.push_back(each);
        }
    }
    std::printf(
        "from ^C to a trial's SIGTERM, 54 trials on three ranks that report 1,000 times a second: "
        "median %.2f ms, 99th percentile %.2f ms (%zu stops)\n",
        quantile(milliseconds, 0.5),
        quantile(milliseconds, 0.99),
        milliseconds.size()
    );
}

void bench_goal(const fs::path& directory) {
    const fs::path notes = directory / "notes";
    fs::remove_all(notes);
    fs::create_directories(notes);
    const std::optional<double> took =
        run(directory / "goal",
            {.ranks = 4,
             .cpus = 18,
             .trials = 216,
             .trial = "command: [" + self().string() + ", trial, goal, \"1000\", " +
                      notes.string() + "]",
             .more = "metric: loss\nmode: min\nstop: {done: \">= 1\"}\n",
             .dedicated_head = true});
    if (!took) {
        return;
    }
    std::vector<double> milliseconds;
    for (const auto& entry : fs::directory_iterator(notes)) {
        double nanoseconds = 0;
        std::ifstream(entry.path()) >> nanoseconds;
        milliseconds.push_back(nanoseconds / 1e6);
    }
    std::printf(
        "from the report that meets `stop` to the trial's being told, the same load: median %.2f "
        "ms, 99th percentile %.2f ms (%zu stops)\n",
        quantile(milliseconds, 0.5),
        quantile(milliseconds, 0.99),
        milliseconds.size()
    );
}

/// Trials a second, without what the start and the end take.
std::optional<double> rate(const fs::path& directory, Job job) {
    const int trials = job.trials;
    job.trials = 1;
    const std::optional<double> empty = run(directory, job);
    job.trials = trials;
    const std::optional<double> full = run(directory, job);
    return empty && full ? std::optional(trials / (*full - *empty)) : std::nullopt;
}

void bench_dispatch(const fs::path& directory) {
    std::vector<double> ratios;
    for (int pair = 0; pair < 3; ++pair) {
        Job job{.ranks = 1, .cpus = 15, .trials = 4'000, .trial = "command: [/bin/true]"};
        const std::optional<double> alone = rate(directory / "alone", job);
        job.ranks = 3;
        job.cpus = 5;
        const std::optional<double> team = rate(directory / "team", job);
        if (!alone || !team) {
            return;
        }
        ratios.push_back(*team / *alone);
        std::printf(
            "  one process %7.0f/s   three ranks %7.0f/s   ratio %.2f\n",
            *alone,
            *team,
            ratios.back()
        );
    }
    std::printf(
        "4,000 trials of /bin/true on 15 slots, three ranks against one process: median ratio "
        "%.2f\n",
        quantile(ratios, 0.5)
    );
}

void bench_sleeps(const fs::path& directory) {
    constexpr double kIdeal = 10;
    const std::optional<double> took =
        run(directory / "sleeps",
            {.ranks = 4, .cpus = 8, .trials = 320, .trial = "command: [sleep, \"1\"]"});
    if (took) {
        std::printf(
            "320 trials of 1 s on 32 slots of 4 ranks: %.2f s, %.1f %% over the ideal 10 s, start "
            "and end included\n",
            *took,
            (*took / kIdeal - 1) * 100
        );
    }
}

/// CPU seconds of every process whose environment holds `mark`, by its command.
std::vector<std::pair<std::string, double>> cpu_seconds(const std::string& mark) {
    std::vector<std::pair<std::string, double>> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream environment(entry.path() / "environ");
        std::stringstream text;
        text << environment.rdbuf();
        if (text.str().find(mark) == std::string::npos) {
            continue;
        }
        std::ifstream stat(entry.path() / "stat");
        std::string line;
        std::getline(stat, line);
        const std::size_t open = line.find('(');
        const std::size_t close = line.rfind(')');
        if (close == std::string::npos) {
            continue;
        }
        std::istringstream fields(line.substr(close + 2));
        std::string skipped;
        for (int field = 3; field < 14; ++field) {
            fields >> skipped;
        }
        double user = 0;
        double system = 0;
        fields >> user >> system;
        found.emplace_back(
            line.substr(open + 1, close - open - 1),
            (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK))
        );
    }
    return found;
}

void bench_idle(const fs::path& directory) {
    constexpr int kSeconds = 20;
    const std::string mark = "MUSTER_BENCH_MARK=" + directory.string();
    ::setenv("MUSTER_BENCH_MARK", directory.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    std::thread running([&] {
        run(directory / "idle",
            {.ranks = 3, .cpus = 1, .trials = 3, .trial = "command: [sleep, \"25\"]"});
    });
    std::this_thread::sleep_for(std::chrono::seconds{3});
    const auto before = cpu_seconds(mark);
    std::this_thread::sleep_for(std::chrono::seconds{kSeconds});
    const auto after = cpu_seconds(mark);
    running.join();
    ::unsetenv("MUSTER_BENCH_MARK");  // NOLINT(concurrency-mt-unsafe)
    const auto sum = [](const auto& processes, const std::string& name) {
        double seconds = 0;
        for (const auto& [command, cpu] : processes) {
            seconds += command.rfind(name, 0) == 0 ? cpu : 0;
        }
        return seconds;
    };
    std::printf(
        "three ranks that wait for their trials: %.2f %% of a core together (ranks, spawners and "
        "keepers, over %d s)\n",
        (sum(after, "muster") - sum(before, "muster")) / kSeconds * 100,
        kSeconds
    );
}

int run_benches(const std::vector<std::string>& wanted) {
    // Memory, so that the disk's mood is in none of the figures; MUSTER_BENCH_DIR says otherwise.
    const char* given = std::getenv("MUSTER_BENCH_DIR");  // NOLINT(concurrency-mt-unsafe)
    std::string pattern =
        std::string(given != nullptr ? given : "/dev/shm") + "/muster-bench-XXXXXX";
    const char* made = ::mkdtemp(pattern.data());
    if (made == nullptr) {
        std::perror("mkdtemp");
        return 1;
    }
    const fs::path directory(made);
    const std::vector<std::pair<std::string, std::function<void(const fs::path&)>>> benches{
        {"reports", bench_reports},
        {"dispatch", bench_dispatch},
        {"stop", bench_stop},
        {"goal", bench_goal},
        {"sleeps", bench_sleeps},
        {"idle", bench_idle}};
    for (const auto& [name, bench] : benches) {
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) {
            bench(directory);
            std::fflush(stdout);
        }
    }
    fs::remove_all(directory);
    return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 4 && words[0] == "trial" && words[1] == "report") {
        return muster::report_trial(std::stod(words[2]), std::stod(words[3]));
    }
    if (words.size() == 4 && words[0] == "trial" && words[1] == "stop") {
        return muster::stop_trial(std::stod(words[2]), words[3]);
    }
    if (words.size() == 4 && words[0] == "trial" && words[1] == "goal") {
        return muster::goal_trial(std::stod(words[2]), words[3]);
    }
    return muster::run_benches(words);
}
