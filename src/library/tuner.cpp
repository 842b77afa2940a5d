// SPDX-License-Identifier: Apache-2.0

#include "muster/tuner.hpp"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cli/experiment_view.hpp"
#include "head/trial.hpp"
#include "journal/reader.hpp"
#include "library/session_state.hpp"
#include "library/trial_records.hpp"
#include "runtime/signals.hpp"
#include "spec/load_spec.hpp"
#include "spec/resolved_spec.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "Tuner";

/// Messages about a spec file begin with a place in it, which this spec does not have.
std::string without_places(const std::string& message) {
    std::string text;
    for (std::size_t at = 0; at < message.size();) {
        const std::size_t end = std::min(message.find('\n', at), message.size());
        std::string line = message.substr(at, end - at);
        if (line.starts_with(kName)) {
            const std::size_t blank = line.find(": ");
            line = blank == std::string::npos ? line : line.substr(blank + 2);
        }
        text += (text.empty() ? "" : "\n") + line;
        at = end + 1;
    }
    return text;
}

/// What the reader of spec files says of `spec`: the same checks, with the same words.
Status check_spec(const ExperimentSpec& spec) {
    ExperimentSpec written = spec;
    for (Parameter& parameter : written.space.parameters) {
        // Functions can't be written; a key of that name is enough here.
        if (std::holds_alternative<SampleFrom>(parameter.domain)) {
            parameter.domain = Constant{Value(0)};
        }
    }
    const Result<ExperimentSpec> read = parse_spec(resolved_yaml(written), std::string(kName));
    if (!read.ok()) {
        return Error{read.error().code, without_places(read.error().message)};
    }
    return Ok{};
}

RunEnding ending_of(RunEnd end) {
    switch (end) {
        case RunEnd::Finished:
            return RunEnding::Finished;
        case RunEnd::TimeBudget:
            return RunEnding::TimeBudget;
        case RunEnd::FailFast:
            return RunEnding::FailFast;
        case RunEnd::Cancelled:
            return RunEnding::Cancelled;
        case RunEnd::Interrupted:
            return RunEnding::Interrupted;
        case RunEnd::Infeasible:
        case RunEnd::NothingWorks:
            return RunEnding::NothingWorks;
    }
    return RunEnding::NothingWorks;
}

/// The spec with what it leaves open filled in.
Result<ExperimentSpec> completed(ExperimentSpec spec, const std::vector<std::string>& functions) {
    TrialSpec& trial = spec.trial;
    if (trial.function.empty() && trial.command.empty() && trial.shell.empty()) {
        if (functions.size() != 1) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "trial.function: missing; the session has {} functions, so say which one runs",
                    functions.size()
                )};
        }
        trial.function = functions.front();
    }
    if (spec.name.empty()) {
        spec.name = trial.function.empty() ? "experiment" : trial.function;
    }
    std::error_code failed;
    const fs::path here = fs::current_path(failed);
    if (failed) {
        return Error{ErrorCode::System, "the current directory is gone: " + failed.message()};
    }
    spec.storage_path = (here / spec.storage_path).lexically_normal().string();
    if (!trial.workdir_is_trial_dir) {
        trial.workdir = (here / trial.workdir).lexically_normal().string();
    }
    return spec;
}

Result<ResultGrid> grid_of(const ExperimentSpec& spec, const RunOutcome& outcome) {
    Result<std::vector<TrialRecord>> records = read_trial_records(outcome.experiment_dir);
    if (!records.ok()) {
        return records.error();
    }
    return ResultGrid(
        std::move(*records),
        spec.objective,
        ending_of(outcome.end),
        outcome.reason,
        outcome.exit_code,
        outcome.experiment_dir
    );
}

}  // namespace

Tuner::Tuner(Session& session, ExperimentSpec spec) : session_(session), spec_(std::move(spec)) {}

Tuner& Tuner::with_resources(const GroupRequest& request) {
    Result<PlacementGroupSpec> group = to_group(request);
    if (!group.ok()) {
        requested_ = group.error();
        return *this;
    }
    return with_resources(std::move(*group));
}

Tuner& Tuner::with_resources(PlacementGroupSpec group) {
    requested_ = Ok{};
    spec_.resources_of = nullptr;
    spec_.resources.clear();
    spec_.resources.push_back({{}, std::move(group)});
    return *this;
}

Tuner& Tuner::with_resources(std::function<GroupRequest(const Config&)> request) {
    requested_ = Ok{};
    spec_.resources_of = [request = std::move(request)](const Config& config) {
        return to_group(request(config));
    };
    return *this;
}

Result<ResultGrid> Tuner::fit() {
    Session::State& state = session_.state();
    Result<ExperimentSpec> spec = completed(spec_, state.started->functions);
    if (!requested_.ok()) {
        return requested_.error();
    }
    if (!spec.ok()) {
        return spec.error();
    }
    if (Status good = check_spec(*spec); !good.ok()) {
        return good.error();
    }
    if (Status known = check_function(*spec, state.started->functions); !known.ok()) {
        return known.error();
    }
    if (state.started->spawner->socket() < 0) {
        return Error{
            ErrorCode::System,
            "the process that starts trials is gone, so this Session can run nothing more"};
    }
    Result<SignalSource> signals = SignalSource::open();
    if (!signals.ok()) {
        return signals.error();
    }
    Surroundings surroundings = state.started->surroundings();
    surroundings.signals = &*signals;
    surroundings.keep_spawner = true;
    RollCall* roll_call = state.roll_call ? &*state.roll_call : nullptr;
    if (roll_call != nullptr) {
        roll_call->set_stop_fd(signals->fd());
    }
    Result<RunOutcome> outcome =
        run_spec(*spec, state.command, surroundings, roll_call, state.observer);
    if (roll_call != nullptr) {
        roll_call->set_stop_fd(-1);
    }
    if (!outcome.ok()) {
        return outcome.error();
    }
    if (outcome->end == RunEnd::Infeasible) {
        return Error{ErrorCode::Infeasible, outcome->reason};
    }
    return grid_of(*spec, *outcome);
}

}  // namespace muster
