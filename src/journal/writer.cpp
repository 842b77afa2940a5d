// SPDX-License-Identifier: Apache-2.0
//
// writer - two threads meet at one mutex: the owner appends lines to buffers, the journal's thread
// takes whole buffers away, writes and syncs them. Whatever came meanwhile is the next group.

#include "journal/writer.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.hpp"
#include "journal/record.hpp"
#include "journal/segments.hpp"
#include "journal/tidy.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;
using journal::SegmentAppender;

/// How long results may wait to be handed to the system. After that only a crash of the whole
/// machine could lose them, for up to results_interval.
constexpr auto kResultsDelay = std::chrono::milliseconds{50};

SegmentAppender::Options
appender_options(const JournalOptions& options, std::string_view stem, std::uint64_t number) {
    return {
        options.directory,
        std::string(stem),
        options.experiment,
        options.segment_bytes,
        number,
        options.files};
}

/// The number after the last segment of `stem`.
Result<std::uint64_t> next_segment(const std::string& directory, std::string_view stem) {
    const Result<std::vector<journal::SegmentFile>> there = journal::list_segments(directory, stem);
    if (!there.ok()) {
        return there.error();
    }
    return there->empty() ? std::uint64_t{1} : there->back().number + 1;
}

Status make_directory(const std::string& directory) {
    if (::mkdir(directory.c_str(), 0700) == 0) {
        const std::string parent = std::filesystem::path(directory).parent_path().string();
        const int error = journal::sync_directory(parent.empty() ? "." : parent);
        return error == 0 ? Status(Ok{}) : journal::system_error("sync", parent, error);
    }
    return errno == EEXIST ? Status(Ok{}) : journal::system_error("make", directory, errno);
}

}  // namespace

/// Shared by the owner and the thread, so that a thread that hangs in the system at the end can be
/// left behind.
struct JournalWriter::State {
    State(JournalOptions wanted, std::uint64_t state_number, std::uint64_t results_number)
        : options(std::move(wanted)),
          state_file(appender_options(options, journal::kStateStem, state_number)),
          results_file(appender_options(options, journal::kResultsStem, results_number)) {}
    ~State() {
        if (event >= 0) {
            ::close(event);
        }
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void run();
    void keep_tidy();
    bool wait_for_work(std::unique_lock<std::mutex>& lock);
    void commit(std::uint64_t last);
    void tell();
    /// REQUIRES: the mutex is held.
    std::string current_problem() const;
    void set_problem(const Status& state, const Status& results);

    const JournalOptions options;
    int event = -1;
    std::thread thread;
    std::thread tidying;
    /// Ends the tidying soon.
    std::atomic<bool> stop_tidying = false;

    // The owner's alone.
    journal::UtcClock utc;
    std::uint64_t next_result = 1;

    std::atomic<std::uint64_t> durable = 0;
    /// Bytes in the buffers and pending in the files.
    std::atomic<std::uint64_t> waiting = 0;

    std::mutex mutex;
    std::condition_variable wake;
    std::condition_variable wake_tidier;
    // Guarded by mutex.
    std::string state_lines;
    std::string result_lines;
    std::uint64_t appended = 0;
    std::string problem;
    /// When the commit that runs began.
    std::optional<Clock::time_point> committing_since;
    bool closing = false;
    bool ended = false;
    /// What the tidier may go over, and whether there is more of it than before.
    std::uint64_t state_open = 0;
    std::uint64_t results_open = 0;
    bool may_tidy = true;
    bool tidied = false;

    // The thread's alone.
    SegmentAppender state_file;
    SegmentAppender results_file;
    std::string state_batch;
    std::string results_batch;
    Clock::time_point results_written;
    Clock::time_point results_synced;
    Clock::time_point retry_at;
    bool failed = false;
    bool closing_now = false;
};

void JournalWriter::State::tell() {
    const std::uint64_t one = 1;
    // It can only fail when the counter is full, and then it is readable anyway.
    (void)!::write(event, &one, sizeof one);
}

/// True once there is something to write; false when the end has come and nothing is left.
bool JournalWriter::State::wait_for_work(std::unique_lock<std::mutex>& lock) {
    while (true) {
        const Clock::time_point now = Clock::now();
        const bool has_state = !state_lines.empty() || state_file.pending() > 0;
        const bool has_results = !result_lines.empty() || results_file.pending() > 0;
        if (closing && !has_state && !has_results) {
            return false;
        }
        Clock::time_point due = Clock::time_point::max();
        if (has_state || (closing && has_results)) {
            due = now;
        } else if (!result_lines.empty()) {
            due = results_written + kResultsDelay;
        } else if (has_results) {
            due = results_synced + options.results_interval;
        }
        due = failed && due != Clock::time_point::max() ? std::max(due, retry_at) : due;
        if (due <= now) {
            return true;
        }
        if (due == Clock::time_point::max()) {
            wake.wait(lock);
        } else {
            wake.wait_until(lock, due);
        }
    }
}

std::string JournalWriter::State::current_problem() const {
    const bool is_slow = committing_since && Clock::now() - *committing_since > options.slow_after;
    return problem.empty() && is_slow
               ? "cannot write " + options.directory + ": the file system does not answer"
               : problem;
}

void JournalWriter::State::set_problem(const Status& state, const Status& results) {
    const std::string text = !state.ok()     ? state.error().message
                             : !results.ok() ? results.error().message
                                             : std::string();
    failed = !text.empty();
    retry_at = Clock::now() + options.retry_interval;
    const std::lock_guard lock(mutex);
    if (problem != text) {
        problem = text;
        tell();
    }
}

/// Results first, so that a trial's end is never on disk without what it had reported before.
void JournalWriter::State::commit(std::uint64_t last) {
    const std::uint64_t before =
        state_file.pending() + results_file.pending() + state_batch.size() + results_batch.size();
    results_file.add(results_batch);
    state_file.add(state_batch);
    results_batch.clear();
    state_batch.clear();

    Status results = Ok{};
    Status state = Ok{};
    if (results_file.pending() > 0) {
        results = results_file.write();
        results_written = Clock::now();
    }
    if (state_file.pending() > 0) {
        state = state_file.sync();
        if (state.ok()) {
            durable.store(last, std::memory_order_release);
            tell();
        }
    }
    const bool sync_results =
        closing_now || Clock::now() >= results_synced + options.results_interval;
    if (results.ok() && results_file.pending() > 0 && sync_results) {
        results = results_file.sync();
        results_synced = Clock::now();
    }
    waiting -= before - state_file.pending() - results_file.pending();
    set_problem(state, results);
}

void JournalWriter::State::run() {
    std::unique_lock lock(mutex);
    while (wait_for_work(lock)) {
        std::swap(state_batch, state_lines);
        std::swap(results_batch, result_lines);
        const std::uint64_t last = appended;
        closing_now = closing;
        committing_since = Clock::now();
        lock.unlock();
        commit(last);
        lock.lock();
        committing_since.reset();
        may_tidy = may_tidy || state_open != state_file.open_number() ||
                   results_open != results_file.open_number();
        state_open = state_file.open_number();
        results_open = results_file.open_number();
        if (may_tidy) {
            wake_tidier.notify_all();
        }
    }
    ended = true;
    wake.notify_all();
}

/// Whoever fails to tidy up tries again when the next segment is full: nothing depends on it.
void JournalWriter::State::keep_tidy() {
    constexpr int kLowestPriority = 19;
    // Linux gives every thread a priority of its own.
    (void)::setpriority(PRIO_PROCESS, 0, kLowestPriority);
    JournalTidier tidier(options.directory, stop_tidying);
    std::unique_lock lock(mutex);
    while (!stop_tidying) {
        if (!may_tidy) {
            wake_tidier.wait(lock);
            continue;
        }
        may_tidy = false;
        const std::uint64_t state_before = state_open;
        const std::uint64_t results_before = results_open;
        lock.unlock();
        (void)tidier.tidy(state_before, results_before);
        lock.lock();
    }
    tidied = true;
    wake.notify_all();
}

Result<JournalWriter> JournalWriter::open(JournalOptions options) {
    if (Status made = make_directory(options.directory); !made.ok()) {
        return made.error();
    }
    const Result<std::uint64_t> state_number = next_segment(options.directory, journal::kStateStem);
    const Result<std::uint64_t> results_number =
        next_segment(options.directory, journal::kResultsStem);
    if (!state_number.ok() || !results_number.ok()) {
        return state_number.ok() ? results_number.error() : state_number.error();
    }
    auto state = std::make_shared<State>(std::move(options), *state_number, *results_number);
    state->durable = state->options.next_state - 1;
    state->appended = state->options.next_state - 1;
    state->next_result = state->options.next_result;
    for (SegmentAppender* file : {&state->state_file, &state->results_file}) {
        if (Status opened = file->write(); !opened.ok()) {
            return opened.error();
        }
    }
    state->state_open = state->state_file.open_number();
    state->results_open = state->results_file.open_number();
    state->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (state->event < 0) {
        return journal::system_error("make", "an eventfd", errno);
    }
    // Signals are for the owner's thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::string problem;
    try {
        state->thread = std::thread([state] { state->run(); });
    } catch (const std::system_error& failed) {
        problem = failed.code().message();
    }
    try {
        state->tidying = std::thread([state] { state->keep_tidy(); });
    } catch (const std::system_error&) {
        // It takes longer to continue the experiment, that is all.
        const std::lock_guard lock(state->mutex);
        state->tidied = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!problem.empty()) {
        return Error{
            ErrorCode::System,
            "cannot start the thread that writes the journal: " + problem + "; see 'ulimit -u'"};
    }
    return JournalWriter(std::move(state));
}

JournalWriter::JournalWriter(std::shared_ptr<State> state) : state_(std::move(state)) {}
JournalWriter::JournalWriter(JournalWriter&&) noexcept = default;
JournalWriter& JournalWriter::operator=(JournalWriter&&) noexcept = default;

JournalWriter::~JournalWriter() {
    if (state_ != nullptr) {
        (void)close(std::chrono::seconds{10});
    }
}

std::uint64_t JournalWriter::append(const Fact& fact, TimePoint at) {
    State& state = *state_;
    const std::string_view utc = state.utc.text();
    const std::lock_guard lock(state.mutex);
    const bool is_result = std::holds_alternative<ResultReported>(fact);
    std::string& lines = is_result ? state.result_lines : state.state_lines;
    const std::uint64_t number = is_result ? state.next_result++ : ++state.appended;
    const std::size_t before = lines.size();
    journal::append_record(fact, {number, at}, utc, lines);
    state.waiting += lines.size() - before;
    if (before == 0) {
        state.wake.notify_all();
    }
    return state.appended;
}

std::uint64_t JournalWriter::durable() const {
    return state_->durable.load(std::memory_order_acquire);
}

std::uint64_t JournalWriter::appended() const {
    const std::lock_guard lock(state_->mutex);
    return state_->appended;
}

int JournalWriter::fd() const {
    return state_->event;
}

void JournalWriter::acknowledge() {
    std::uint64_t count = 0;
    (void)!::read(state_->event, &count, sizeof count);
}

bool JournalWriter::full() const {
    return state_->waiting.load(std::memory_order_relaxed) > state_->options.limit_bytes;
}

std::string JournalWriter::problem() const {
    const std::lock_guard lock(state_->mutex);
    return state_->current_problem();
}

Status JournalWriter::close(Duration patience) {
    State& state = *state_;
    if (!state.thread.joinable()) {
        return Ok{};
    }
    std::unique_lock lock(state.mutex);
    state.closing = true;
    state.stop_tidying = true;
    state.wake.notify_all();
    state.wake_tidier.notify_all();
    const auto until = Clock::now() + patience;
    const bool ended = state.wake.wait_until(lock, until, [&] { return state.ended; });
    const bool tidied = state.wake.wait_until(lock, until, [&] { return state.tidied; });
    const std::string problem = state.current_problem();
    lock.unlock();
    if (state.tidying.joinable()) {
        tidied ? state.tidying.join() : state.tidying.detach();
    }
    if (ended) {
        state.thread.join();
        return Ok{};
    }
    // It hangs in the system or keeps failing. Nobody waits for it longer than was said.
    state.thread.detach();
    return Error{
        ErrorCode::System,
        fmt::format(
            "{} bytes of the journal in {} are not on disk: {}",
            state.waiting.load(),
            state.options.directory,
            problem.empty() ? "the file system does not answer" : problem
        )};
}

}  // namespace muster
