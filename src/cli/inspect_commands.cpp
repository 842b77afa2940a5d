// SPDX-License-Identifier: Apache-2.0
//
// inspect_commands - `muster results` and `muster logs`: what an experiment left on disk.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/experiment_view.hpp"
#include "process/stream_output.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

void tell_problems(const ExperimentView& view) {
    for (const std::string& problem : view.problems) {
        std::fputs(fmt::format("muster: journal: {}\n", problem).c_str(), stderr);
    }
}

/// Copies a file to stdout; false when there is none.
bool print_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return false;
    }
    std::string block(std::size_t{1} << 16U, '\0');
    while (file) {
        file.read(block.data(), static_cast<std::streamsize>(block.size()));
        print(std::string_view(block.data(), static_cast<std::size_t>(file.gcount())));
        if (std::ferror(stdout) != 0) {
            break;
        }
    }
    return true;
}

/// What the trial wrote to each node's common file. True when there was something.
Result<bool> print_stream(const ExperimentView& view, TrialId trial) {
    bool found = false;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(view.directory, failed)) {
        const std::string name = entry.path().filename().string();
        if (name.rfind("output-", 0) != 0 || name.ends_with(".index")) {
            continue;
        }
        const Result<std::string> output = read_stream_output(entry.path().string(), trial);
        if (!output) {
            return output.error();
        }
        print(*output);
        found = found || !output->empty();
    }
    return found;
}

}  // namespace

int carry_out(const ResultsCommand& command) {
    const Result<ExperimentView> view = open_experiment(command.directory);
    if (!view) {
        return complain(view.error());
    }
    tell_problems(*view);
    const Head& head = *view->head;
    std::vector<TrialId> trials = command.format == ResultsFormat::Table
                                      ? trials_by_rank(head, view->spec.objective)
                                      : trials_by_id(head);
    if (command.best && command.format == ResultsFormat::Table) {
        print(format_best(head, view->spec, command.directory));
        return head.summary().best ? kExitOk : kExitTrialsFailed;
    }
    if (command.best) {
        const std::optional<TrialId> best = head.summary().best;
        trials.clear();
        if (best) {
            trials.push_back(*best);
        }
    }
    if (command.limit > 0 && trials.size() > command.limit) {
        trials.resize(command.limit);
    }
    print(format_results(*view, trials, command.format, output_width()));
    return kExitOk;
}

int carry_out(const LogsCommand& command) {
    const Result<ExperimentView> view = open_experiment(command.directory);
    if (!view) {
        return complain(view.error());
    }
    const Result<TrialId> trial = find_trial(*view, command.trial);
    if (!trial) {
        return complain(trial.error());
    }
    if (print_file(fs::path(view->directory) / to_string(*trial) / "output")) {
        return kExitOk;
    }
    const Result<bool> streamed = print_stream(*view, *trial);
    if (!streamed) {
        return complain(streamed.error());
    }
    if (!*streamed) {
        const bool discarded = view->spec.trial.output == OutputMode::Discard;
        std::fputs(
            fmt::format(
                "muster: trial {} has written no output{}\n",
                to_string(*trial),
                discarded ? " that was kept (trial.output: discard)" : ""
            )
                .c_str(),
            stderr
        );
    }
    return kExitOk;
}

}  // namespace muster
