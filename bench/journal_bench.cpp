// SPDX-License-Identifier: Apache-2.0
//
// journal_bench - how many results a second the journal takes, beside a bare loop that writes the
// same bytes to a file on the same file system and syncs it once at the end.
//
//   journal_bench [directory]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "journal/reader.hpp"
#include "journal/writer.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kResults = 500'000;
constexpr int kRepeats = 5;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

ResultReported result(std::uint32_t index) {
    const std::uint32_t step = index / 64;
    return {
        TrialId{index % 64},
        {1, index % 64},
        {static_cast<double>(step), {{"loss", 1.0 / (1 + index)}, {"accuracy", 0.5}, {"epoch", 3}}},
        false,
        0};
}

/// Seconds for all results, from the first append to the last byte on disk.
double write_journal(const std::string& directory) {
    Result<JournalWriter> journal =
        JournalWriter::open({.directory = directory, .experiment = "bench"});
    if (!journal.ok()) {
        std::fprintf(stderr, "journal_bench: %s\n", journal.error().message.c_str());
        std::exit(1);
    }
    const Clock::time_point start = Clock::now();
    for (std::uint32_t index = 0; index < kResults; ++index) {
        journal->append(result(index), TimePoint{Duration{index}});
        while (journal->full()) {
            ::poll(nullptr, 0, 1);
        }
    }
    (void)journal->close(std::chrono::seconds{60});
    return seconds_since(start);
}

/// The median delay, in seconds, from a fact of the state to its being on disk, while 100,000
/// results a second come in.
double delay_under_load(const std::string& directory) {
    Result<JournalWriter> journal =
        JournalWriter::open({.directory = directory, .experiment = "bench"});
    std::vector<double> delays;
    const Clock::time_point start = Clock::now();
    std::uint32_t index = 0;
    while (seconds_since(start) < 3) {
        const Clock::time_point asked = Clock::now();
        const std::uint64_t sequence = journal->append(TrialEnded{TrialId{index}}, {});
        while (journal->durable() < sequence) {
            while (index < seconds_since(start) * 100'000) {
                journal->append(result(index++), {});
            }
            pollfd poll_fd{journal->fd(), POLLIN, 0};
            ::poll(&poll_fd, 1, 1);
            journal->acknowledge();
        }
        delays.push_back(seconds_since(asked));
    }
    return median(delays);
}

double write_bare(const std::string& from, const std::string& to) {
    std::ifstream file(from, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    constexpr std::size_t kBlock = 1 << 16;
    const Clock::time_point start = Clock::now();
    const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
        const std::size_t size = std::min(kBlock, bytes.size() - at);
        if (::write(fd, bytes.data() + at, size) != static_cast<ssize_t>(size)) {
            std::exit(1);
        }
    }
    ::fdatasync(fd);
    ::close(fd);
    return seconds_since(start);
}

double read_back(const std::string& directory) {
    const Clock::time_point start = Clock::now();
    std::uint32_t count = 0;
    (void)read_results(directory, std::nullopt, [&](const ResultReported&, TimePoint) { ++count; });
    if (count != kResults) {
        std::fprintf(stderr, "journal_bench: %u of %u results came back\n", count, kResults);
        std::exit(1);
    }
    return seconds_since(start);
}

void run(const fs::path& parent) {
    std::vector<double> journal;
    std::vector<double> bare;
    std::vector<double> reading;
    for (int repeat = 0; repeat <= kRepeats; ++repeat) {
        const std::string directory = (parent / fmt::format("journal-{}", repeat)).string();
        const double wrote = write_journal(directory);
        const double wrote_bare =
            write_bare(directory + "/results-000001.log", (parent / "bare").string());
        const double read = read_back(directory);
        fs::remove_all(directory);
        // The first one warms the file system up.
        if (repeat > 0) {
            journal.push_back(kResults / wrote);
            bare.push_back(kResults / wrote_bare);
            reading.push_back(kResults / read);
        }
    }
    const double delay = delay_under_load((parent / "delay").string());
    std::printf("results a second into the journal: %.0f\n", median(journal));
    std::printf("bare writes of the same bytes:     %.0f\n", median(bare));
    std::printf("ratio:                             %.2f\n", median(journal) / median(bare));
    std::printf("results a second read back:        %.0f\n", median(reading));
    std::printf("a fact to disk under 100,000/s:    %.2f ms (median)\n", delay * 1000);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
    std::string parent =
        (argc > 1 ? std::string(argv[1]) : std::string("/tmp")) + "/journal-bench-XXXXXX";
    if (::mkdtemp(parent.data()) == nullptr) {
        std::perror("journal_bench");
        return 1;
    }
    muster::run(parent);
    std::filesystem::remove_all(parent);
    return 0;
}
