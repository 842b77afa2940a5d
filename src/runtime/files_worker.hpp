// SPDX-License-Identifier: Apache-2.0
//
// files_worker - does for a loop what may take as long as the storage does: in a thread of its own,
// so that the loop never waits. It knows nothing of what it does.
//
// What somebody waits for is Prompt and is done in order; what can wait (removing files) is Idle
// and goes beside it in another thread. A thread begins with its first job.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/time.hpp"

namespace muster {

class FilesWorker {
  public:
    /// What a job leads to, back in the loop. May be empty.
    using Then = std::function<void(TimePoint now)>;
    using Job = std::function<Then()>;

    enum class Lane : std::uint8_t { Prompt, Idle };

    FilesWorker();
    /// As finish() with no patience.
    ~FilesWorker();
    FilesWorker(const FilesWorker&) = delete;
    FilesWorker& operator=(const FilesWorker&) = delete;

    void post(Lane lane, Job job) { post_to(state_, lane, std::move(job)); }

    /// post() for jobs themselves, also for one that is done after the worker is gone.
    std::function<void(Lane lane, Job job)> poster() const;

    /// Readable while take() has something to do. -1 when the system gave none: then take() is to
    /// be called now and then.
    int fd() const;

    /// Carries out what the jobs that are done lead to.
    void take(TimePoint now);

    /// Does what is posted, for at most so long; what is still under way then is left to itself.
    /// Nothing leads to anything any more.
    void finish(std::chrono::nanoseconds patience);

  private:
    struct State;
    static bool begin(const std::shared_ptr<State>& state, Lane lane);
    static void post_to(const std::shared_ptr<State>& state, Lane lane, Job job);

    std::shared_ptr<State> state_;
};

}  // namespace muster
