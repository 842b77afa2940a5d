// SPDX-License-Identifier: Apache-2.0
//
// background_output - a thread of its own does the writing: whether a write would block can't be
// asked of every terminal, and making it non-blocking would do so for the shell as well.

#include "cli/background_output.hpp"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <unistd.h>

namespace muster {

/// Shared with the thread, so that one that hangs can be left behind.
struct BackgroundOutput::State {
    explicit State(int wanted) : fd(wanted) {}

    void run();

    const int fd;
    mutable std::mutex mutex;
    std::condition_variable changed;
    // Guarded by mutex.
    std::string waiting;
    std::size_t writing = 0;
    bool closing = false;
    bool ended = false;
    bool started = false;
    /// No thread could be had: the writing is done at once.
    bool alone = false;
};

namespace {

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            // Nobody reads any more, or the disk is full: the run is told elsewhere as well.
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

}  // namespace

void BackgroundOutput::State::run() {
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [&] { return closing || !waiting.empty(); });
        if (waiting.empty()) {
            break;
        }
        const std::string batch = std::exchange(waiting, {});
        writing = batch.size();
        lock.unlock();
        write_all(fd, batch);
        lock.lock();
        writing = 0;
    }
    ended = true;
    changed.notify_all();
}

BackgroundOutput::BackgroundOutput(int fd) : state_(std::make_shared<State>(fd)) {}

BackgroundOutput::~BackgroundOutput() {
    std::unique_lock lock(state_->mutex);
    state_->closing = true;
    state_->changed.notify_all();
    if (state_->started) {
        state_->changed.wait_for(lock, kPatience, [&] { return state_->ended; });
    }
}

bool BackgroundOutput::write(const std::string& text) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    if (state.waiting.size() + state.writing + text.size() > kMostBytes) {
        return false;
    }
    state.waiting += text;
    if (!std::exchange(state.started, true)) {
        // Signals are for the owner's thread.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([shared = state_] { shared->run(); }).detach();
        } catch (const std::system_error&) {
            state.alone = true;
            state.ended = true;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    if (state.alone) {
        write_all(state.fd, std::exchange(state.waiting, {}));
    }
    state.changed.notify_all();
    return true;
}

bool BackgroundOutput::busy() const {
    const std::lock_guard lock(state_->mutex);
    return state_->writing > 0 || !state_->waiting.empty();
}

}  // namespace muster
