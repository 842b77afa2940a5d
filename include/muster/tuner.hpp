// SPDX-License-Identifier: Apache-2.0
//
// tuner - runs an experiment whose trials are functions (or commands) from a C++ program.
//
//     muster::Tuner tuner{session, {
//         .name = "quadratic",
//         .objective = muster::ObjectiveSpec{"loss", muster::Mode::Min},
//         .num_samples = 20,
//         .trial = {.function = "train"},
//         .space = {{muster::space::uniform("x", -1, 1)}},
//     }};
//     const muster::ResultGrid results = muster::or_exit(tuner.fit());

#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "muster/error.hpp"
#include "muster/experiment.hpp"
#include "muster/resource_request.hpp"
#include "muster/result_grid.hpp"
#include "muster/session.hpp"

namespace muster {

/// One experiment of a Session. Thread: that of the Session.
class Tuner {
  public:
    /// `spec` is what a spec file says, under the same names: see muster/experiment.hpp. Without a
    /// trial of its own it runs the session's only trainable. `session` outlives this.
    Tuner(Session& session, ExperimentSpec spec);

    /// Every trial gets this. What is wrong with it is told by fit().
    Tuner& with_resources(const GroupRequest& request);
    Tuner& with_resources(PlacementGroupSpec group);
    /// A trial gets what the function says of its config: a ResourceRequest or a GroupRequest. It
    /// must depend on the config alone: it is asked again when the experiment goes on. A trial
    /// whose request is wrong, or which not even the idle nodes could run, fails, and only that
    /// trial; so does one for which the function throws. Trials wait by request, so thousands of
    /// different ones make each event dearer: round amounts.
    Tuner& with_resources(std::function<GroupRequest(const Config&)> request);
    const ExperimentSpec& spec() const { return spec_; }

    /// Runs the experiment to its end, or goes on with it when an earlier run left it unfinished.
    /// What it shows goes to stdout, as with `muster run`. Signals are handled as there from first
    /// to last; a run that they ended is no error: see ResultGrid::ending().
    ///
    /// May be called again, and by other Tuners of the session, one after the other.
    ///
    /// Errors: InvalidInput, when the spec is wrong (naming the key); Infeasible; Conflict, when
    /// another run holds the experiment, or it was begun with another space; System.
    Result<ResultGrid> fit();

  private:
    Session& session_;
    ExperimentSpec spec_;
    Status requested_ = Ok{};
};

/// The exit code of `muster` for this error.
int exit_code_of(const Error& error);

/// The value, or the end of the program: the error on stderr and its exit code.
template <class T>
T or_exit(Result<T> result) {
    if (!result.ok()) {
        std::fprintf(stderr, "muster: %s\n", result.error().message.c_str());
        std::exit(exit_code_of(result.error()));  // NOLINT(concurrency-mt-unsafe)
    }
    return std::move(result).value();
}

}  // namespace muster
