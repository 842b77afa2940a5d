// SPDX-License-Identifier: Apache-2.0

#include "runtime/files_worker.hpp"

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"

namespace muster {

/// Shared with the threads: one that hangs in the kernel may outlive the worker.
struct FilesWorker::State {
    struct LaneState {
        std::deque<Job> jobs;
        bool has_thread = false;
        bool busy = false;
    };

    std::mutex mutex;
    std::condition_variable changed;
    std::array<LaneState, 2> lanes;
    std::vector<Then> done;
    bool ending = false;
    bool given_up = false;
    UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    LaneState& lane(Lane name) { return lanes.at(static_cast<std::size_t>(name)); }

    bool idle() const {
        bool idle = true;
        for (const LaneState& state : lanes) {
            idle = idle && state.jobs.empty() && !state.busy;
        }
        return idle;
    }

    void serve(Lane name) {
        LaneState& mine = lane(name);
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return ending || !mine.jobs.empty(); });
            if (mine.jobs.empty() || given_up) {
                return;
            }
            const Job job = std::move(mine.jobs.front());
            mine.jobs.pop_front();
            mine.busy = true;
            lock.unlock();
            add(job());
            lock.lock();
            mine.busy = false;
            changed.notify_all();
        }
    }

    void add(Then then) {
        if (!then) {
            return;
        }
        const std::lock_guard lock(mutex);
        done.push_back(std::move(then));
        const std::uint64_t one = 1;
        // The counter is far from its end, so this neither fails nor blocks.
        [[maybe_unused]] const ssize_t wrote = ::write(event.get(), &one, sizeof one);
    }
};

FilesWorker::FilesWorker() : state_(std::make_shared<State>()) {}

FilesWorker::~FilesWorker() {
    finish(std::chrono::nanoseconds{0});
}

/// False when the system gives no thread.
bool FilesWorker::begin(const std::shared_ptr<State>& state, Lane lane) {
    // Signals are the loop's business.
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = true;
    try {
        std::thread([state, lane] { state->serve(lane); }).detach();
    } catch (const std::system_error&) {
        good = false;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return good;
}

void FilesWorker::post_to(const std::shared_ptr<State>& state, Lane lane, Job job) {
    {
        const std::lock_guard lock(state->mutex);
        State::LaneState& mine = state->lane(lane);
        mine.has_thread = mine.has_thread || begin(state, lane);
        if (mine.has_thread) {
            mine.jobs.push_back(std::move(job));
            state->changed.notify_all();
            return;
        }
    }
    // Late is better than never.
    state->add(job());
}

std::function<void(FilesWorker::Lane, FilesWorker::Job)> FilesWorker::poster() const {
    return [state = state_](Lane lane, Job job) { post_to(state, lane, std::move(job)); };
}

int FilesWorker::fd() const {
    return state_->event.get();
}

void FilesWorker::take(TimePoint now) {
    std::vector<Then> done;
    {
        const std::lock_guard lock(state_->mutex);
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = ::read(state_->event.get(), &count, sizeof count);
        done.swap(state_->done);
    }
    for (const Then& then : done) {
        then(now);
    }
}

void FilesWorker::finish(std::chrono::nanoseconds patience) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, patience, [&] { return state_->idle(); });
    state_->ending = true;
    state_->given_up = true;
    state_->changed.notify_all();
}

}  // namespace muster
