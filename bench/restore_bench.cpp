// SPDX-License-Identifier: Apache-2.0
//
// restore_bench - how long a large experiment takes to be continued, and how much memory: a journal
// of so many trials with ten reports each, all but the last thousand of which have ended, becomes a
// head's state. The head's own state is in the memory that it says.
//
//   restore_bench [directory [trials]]      makes the journal, restores it as it is and tidied
//   restore_bench --make DIRECTORY TRIALS   only makes it
//   restore_bench --tidy DIRECTORY          only does what a run's tidying does meanwhile
//   restore_bench --restore DIRECTORY       only restores it

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "head/head.hpp"
#include "journal/tidy.hpp"
#include "journal/writer.hpp"
#include "runtime/restore_head.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kTrials = 1'000'000;
constexpr std::uint32_t kUnfinished = 1'000;
constexpr std::uint32_t kReports = 10;
/// Trials that run at once.
constexpr std::uint32_t kWide = 64;
/// How far creation is ahead of the start.
constexpr std::uint32_t kAhead = 128;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

TrialResult report(std::uint32_t trial, std::uint32_t step) {
    return {
        double(step),
        {{"loss", 1.0 / (1 + trial % 977 + step)},
         {"accuracy", 1 - 1.0 / (2 + step + trial % 89)},
         {"epoch", std::int64_t{step}}}};
}

class Maker {
  public:
    explicit Maker(JournalWriter& journal, std::uint32_t trials)
        : journal_(journal),
          trials_(trials) {
        schema_->keys = {"lr", "momentum", "hidden", "batch", "optimizer"};
    }

    /// The last kUnfinished trials run or wait when it ends.
    void run() {
        append(RunStarted{1});
        append(NodeJoined{NodeId{0}, "node01", 1});
        for (std::uint32_t turn = 0; turn < trials_ + kAhead + kWide; ++turn) {
            if (turn < trials_) {
                create(turn);
            }
            if (turn >= kAhead && turn - kAhead < trials_ - kUnfinished / 2) {
                start(turn - kAhead);
            }
            // One report of each trial that runs, as time goes by.
            for (std::uint32_t step = 1; step <= kReports; ++step) {
                const std::uint32_t behind = kAhead + step * (kWide / kReports);
                if (turn >= behind && turn - behind < trials_ - kUnfinished / 2) {
                    tell(turn - behind, step);
                }
            }
            if (turn >= kAhead + kWide && turn - kAhead - kWide < trials_ - kUnfinished) {
                end(turn - kAhead - kWide);
            }
        }
    }

  private:
    void append(const Fact& fact) {
        now_ = now_ + Duration{10'000};
        journal_.append(fact, now_);
        while (journal_.full()) {
            ::poll(nullptr, 0, 1);
        }
    }
    void create(std::uint32_t id) {
        append(TrialCreated{
            TrialId{id},
            Config(
                schema_,
                {Value(1e-5 * (1 + id)),
                 Value(0.5 + 1.0 / (3 + id)),
                 Value(std::int64_t{32} << (id % 4)),
                 Value(64),
                 Value(id % 2 == 0 ? "sgd" : "adam")}
            )});
    }
    void start(std::uint32_t id) {
        BundlePlacement placed;
        placed.bundle.cpu = Amount::whole(2);
        placed.bundle.memory_bytes = std::int64_t{2} << 30U;
        placed.cores = {id % kWide * 2, id % kWide * 2 + 1};
        append(AttemptStarted{TrialId{id}, {1, id}, {{placed}}});
    }
    void tell(std::uint32_t id, std::uint32_t step) {
        append(ResultReported{TrialId{id}, {1, id}, report(id, step), false, 0});
    }
    void end(std::uint32_t id) {
        append(AttemptEnded{
            TrialId{id},
            {1, id},
            {},
            {std::chrono::milliseconds{1234}, std::chrono::milliseconds{999}, 123 << 20},
            false});
        append(TrialEnded{
            TrialId{id}, TrialState::Completed, "", kReports, report(id, 10), report(id, 10)});
    }

    JournalWriter& journal_;
    std::uint32_t trials_;
    std::shared_ptr<ConfigSchema> schema_ = std::make_shared<ConfigSchema>();
    TimePoint now_;
};

int make(const std::string& directory, std::uint32_t trials) {
    const Clock::time_point start = Clock::now();
    Result<JournalWriter> journal =
        JournalWriter::open({.directory = directory, .experiment = "bench"});
    if (!journal.ok()) {
        std::fprintf(stderr, "restore_bench: %s\n", journal.error().message.c_str());
        return 1;
    }
    Maker(*journal, trials).run();
    if (!journal->close(std::chrono::seconds{60}).ok()) {
        return 1;
    }
    std::uint64_t bytes = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(directory)) {
        bytes += file.file_size();
    }
    std::printf("made in:      %.1f s\n", seconds_since(start));
    std::printf("on disk:      %.0f MiB\n", double(bytes) / (1 << 20));
    return 0;
}

int tidy(const std::string& directory) {
    const std::atomic<bool> stop = false;
    const Clock::time_point start = Clock::now();
    const Status tidied = JournalTidier(directory, stop).tidy();
    if (!tidied.ok()) {
        std::fprintf(stderr, "restore_bench: %s\n", tidied.error().message.c_str());
        return 1;
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    std::printf("tidied in:    %.1f s\n", seconds_since(start));
    std::printf("its memory:   %.0f MiB\n", double(usage.ru_maxrss) / 1024);
    return 0;
}

int restore(const std::string& directory) {
    ExperimentSpec spec;
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    Head head(spec, RunOptions{}, std::nullopt);
    const Clock::time_point start = Clock::now();
    const Result<Restored> restored = restore_head(directory, head);
    const double took = seconds_since(start);
    if (!restored.ok()) {
        std::fprintf(stderr, "restore_bench: %s\n", restored.error().message.c_str());
        return 1;
    }
    for (const std::string& problem : restored->problems) {
        std::printf("%s\n", problem.c_str());
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const HeadSummary summary = head.summary();
    std::printf(
        "restored:     %u trials, %.0f ended, %.0f pending\n",
        head.trial_count(),
        double(summary.done()),
        double(summary.pending)
    );
    std::printf("restored in:  %.2f s\n", took);
    std::printf("peak memory:  %.0f MiB\n", double(usage.ru_maxrss) / 1024);
    return 0;
}

/// A process of its own, so that its memory is its own.
int in_new_process(const char* what, const std::string& directory, const std::string& trials) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::execl(
            "/proc/self/exe", "restore_bench", what, directory.c_str(), trials.c_str(), nullptr
        );
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    using muster::in_new_process;
    using muster::kTrials;
    using muster::make;
    using muster::restore;
    using muster::tidy;
    const std::string_view what = argc > 2 ? argv[1] : "";
    if (what == "--make" && argc > 3) {
        return make(argv[2], static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10)));
    }
    if (what == "--tidy") {
        return tidy(argv[2]);
    }
    if (what == "--restore") {
        return restore(argv[2]);
    }
    std::string parent =
        (argc > 1 ? std::string(argv[1]) : std::string("/tmp")) + "/restore-bench-XXXXXX";
    if (::mkdtemp(parent.data()) == nullptr) {
        std::perror("restore_bench");
        return 1;
    }
    const std::string trials = argc > 2 ? argv[2] : std::to_string(kTrials);
    int code = in_new_process("--make", parent, trials);
    code = code == 0 ? in_new_process("--restore", parent, trials) : code;
    code = code == 0 ? in_new_process("--tidy", parent, trials) : code;
    code = code == 0 ? in_new_process("--restore", parent, trials) : code;
    std::filesystem::remove_all(parent);
    return code;
}
