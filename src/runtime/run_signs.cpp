// SPDX-License-Identifier: Apache-2.0

#include "runtime/run_signs.hpp"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "runtime/experiment_dir.hpp"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

/// Shared by the owner and the thread, so that a thread that hangs in the system can be left
/// behind.
struct RunSigns::State {
    State(std::shared_ptr<const OwnerFile> of, std::string in, Duration slow)
        : directory(std::move(in)),
          slow_after(slow),
          owner(std::move(of)) {}

    void run();
    void touch(bool is_last);
    /// REQUIRES: the mutex is held.
    std::string current_problem() const;

    const std::string directory;
    const Duration slow_after;
    /// Given up by the thread, which may hang in that too.
    std::shared_ptr<const OwnerFile> owner;
    std::thread thread;

    mutable std::mutex mutex;
    std::condition_variable wake;
    // Guarded by mutex.
    std::optional<std::string> live;
    Status owned = Ok{};
    std::string owner_problem;
    std::string live_problem;
    std::optional<Clock::time_point> busy_since;
    bool closing = false;
    bool ended = false;
};

std::string RunSigns::State::current_problem() const {
    if (busy_since && Clock::now() - *busy_since > slow_after) {
        return "cannot write " + directory + ": the file system does not answer";
    }
    return owner_problem.empty() ? live_problem : owner_problem;
}

void RunSigns::State::touch(bool is_last) {
    const Status touched = owner->touch();
    const std::lock_guard lock(mutex);
    const bool is_lost = !touched.ok() && touched.error().code == ErrorCode::Conflict;
    owned = is_lost ? touched : Status(Ok{});
    owner_problem = touched.ok() ? std::string() : touched.error().message;
    busy_since = is_last ? busy_since : Clock::now();
}

void RunSigns::State::run() {
    Clock::time_point touch_at = Clock::now() + OwnerFile::kHeartbeat;
    std::unique_lock lock(mutex);
    while (true) {
        wake.wait_until(lock, touch_at, [this] { return closing || live.has_value(); });
        const bool is_last = closing;
        std::optional<std::string> text = std::exchange(live, std::nullopt);
        busy_since = Clock::now();
        lock.unlock();
        if (is_last || Clock::now() >= touch_at) {
            touch(is_last);
            touch_at = Clock::now() + OwnerFile::kHeartbeat;
        }
        std::string problem;
        if (text) {
            const Status written = replace_file(directory + "/live.json", *text, false);
            problem = written.ok() ? std::string() : written.error().message;
        }
        if (is_last) {
            owner.reset();
        }
        lock.lock();
        busy_since.reset();
        live_problem = text ? problem : live_problem;
        // What could not be shown is shown later, unless there is something newer.
        if (!problem.empty() && !live && !is_last) {
            live = std::move(text);
            wake.wait_until(lock, touch_at, [this] { return closing; });
        }
        if (is_last) {
            break;
        }
    }
    ended = true;
    wake.notify_all();
}

Result<RunSigns> RunSigns::begin(
    std::shared_ptr<const OwnerFile> owner,
    const std::string& directory,
    Duration slow_after
) {
    auto state = std::make_shared<State>(std::move(owner), directory, slow_after);
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
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!problem.empty()) {
        return Error{
            ErrorCode::System,
            "cannot start the thread that says that the run lives: " + problem +
                "; see 'ulimit -u'"};
    }
    return RunSigns(std::move(state));
}

RunSigns::RunSigns(std::shared_ptr<State> state) : state_(std::move(state)) {}
RunSigns::RunSigns(RunSigns&&) noexcept = default;

RunSigns::~RunSigns() {
    if (state_ != nullptr) {
        (void)close(std::chrono::seconds{5});
    }
}

void RunSigns::show(std::string live) {
    const std::lock_guard lock(state_->mutex);
    state_->live = std::move(live);
    state_->wake.notify_all();
}

Status RunSigns::owned() const {
    const std::lock_guard lock(state_->mutex);
    return state_->owned;
}

std::string RunSigns::problem() const {
    const std::lock_guard lock(state_->mutex);
    return state_->current_problem();
}

Status RunSigns::close(Duration patience) {
    State& state = *state_;
    if (!state.thread.joinable()) {
        return state.owned;
    }
    std::unique_lock lock(state.mutex);
    state.closing = true;
    state.wake.notify_all();
    const bool ended =
        state.wake.wait_until(lock, Clock::now() + patience, [&] { return state.ended; });
    Status owned = state.owned;
    std::string problem = state.current_problem();
    lock.unlock();
    if (!ended) {
        state.thread.detach();
        problem = "cannot write " + state.directory + ": the file system does not answer";
    } else {
        state.thread.join();
    }
    if (!owned.ok()) {
        return owned;
    }
    return problem.empty() ? Status(Ok{}) : Error{ErrorCode::System, std::move(problem)};
}

}  // namespace muster
