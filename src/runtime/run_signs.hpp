// SPDX-License-Identifier: Apache-2.0
//
// run_signs - what a run shows of itself on the experiment's storage: that it lives (the owner
// file) and what goes on (live.json). A thread of its own writes them, so that storage which hangs
// or is gone delays nothing else.

#pragma once

#include <memory>
#include <string>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "runtime/owner_file.hpp"

namespace muster {

class RunSigns {
  public:
    /// Writes in `directory`; a call of the system that takes longer than `slow_after` is told as a
    /// problem.
    /// Errors: System, when there can be no thread.
    static Result<RunSigns> begin(
        std::shared_ptr<const OwnerFile> owner,
        const std::string& directory,
        Duration slow_after = std::chrono::seconds{5}
    );
    /// As close(), with 5 s.
    ~RunSigns();
    RunSigns(RunSigns&&) noexcept;
    RunSigns& operator=(RunSigns&&) = delete;
    RunSigns(const RunSigns&) = delete;
    RunSigns& operator=(const RunSigns&) = delete;

    /// Puts `live` into live.json, unless something newer comes before.
    void show(std::string live);

    /// Conflict, once another run has taken over.
    Status owned() const;

    /// Why nothing can be shown at the moment; empty while all is well.
    std::string problem() const;

    /// Shows what is to be shown, says for the last time that the run lives, and ends the thread.
    /// One that hangs for longer than `patience` is left behind, with what it holds.
    /// Errors: as owned(), or System with the problem.
    Status close(Duration patience);

  private:
    struct State;
    explicit RunSigns(std::shared_ptr<State> state);

    std::shared_ptr<State> state_;
};

}  // namespace muster
