// SPDX-License-Identifier: Apache-2.0
//
// status_commands - `muster status` and `muster explain`: what goes on, from what the run leaves on
// disk for others to read.

#include <csignal>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/experiment_view.hpp"
#include "cli/progress.hpp"
#include "cli/text_table.hpp"
#include "head/trial.hpp"
#include "runtime/live_view.hpp"

namespace muster {
namespace {

std::string own_host() {
    std::string name(256, '\0');
    if (::gethostname(name.data(), name.size() - 1) != 0) {
        return "";
    }
    name.resize(name.find('\0'));
    return name;
}

/// Whether the process that wrote the view is known to be gone.
bool is_gone(const LiveView& view) {
    return view.host == own_host() && ::kill(static_cast<pid_t>(view.pid), 0) != 0 &&
           errno == ESRCH;
}

std::string who_and_when(const LiveView& view) {
    const auto age = static_cast<std::int64_t>(::time(nullptr)) - view.written;
    const std::string ago =
        age <= 0 ? "just now" : format_duration(std::chrono::seconds{age}) + " ago";
    if (!view.ended.empty()) {
        return fmt::format("{} {}", view.ended, ago);
    }
    if (is_gone(view)) {
        return fmt::format(
            "not running: the process {} on {} is gone; run it again to go on", view.pid, view.host
        );
    }
    // A live run rewrites its view at least every few seconds while anything changes.
    return fmt::format("running on {} (process {}), seen {}", view.host, view.pid, ago);
}

std::string counts_line(const LiveView& view) {
    std::string text;
    for (const auto& count : view.counts) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.second, count.first);
    }
    return text.empty() ? "no trials yet" : text;
}

/// A run that is over uses nothing.
std::string in_use_line(const LiveView& view) {
    return view.ended.empty() && !is_gone(view) ? fmt::format(
                                                      "in use: {} of {}{}\n",
                                                      view.in_use,
                                                      view.capacity,
                                                      on_nodes(view.nodes, view.nodes_set_aside)
                                                  )
                                                : "";
}

std::string status_text(const LiveView& view) {
    std::string text = fmt::format("{}: {}\n", view.experiment, who_and_when(view));
    text += counts_line(view);
    text += view.total ? fmt::format(" (of {})\n", *view.total) : "\n";
    text += in_use_line(view);
    if (view.best) {
        text += fmt::format(
            "best {} at step {}: {}\n  {}\n",
            to_string(view.best->trial),
            view.best->step,
            view.best->metrics,
            view.best->config
        );
    }
    if (!view.running.empty()) {
        TextTable table({"trial", "state", "step", "last result", "config"});
        for (const LiveTrial& trial : view.running) {
            table.add_row(
                {to_string(trial.trial),
                 trial.state,
                 trial.metrics.empty() ? "" : fmt::format("{}", trial.step),
                 fit(trial.metrics, 50),
                 trial.config}
            );
        }
        text += "\n" + table.text();
    }
    if (view.running_left_out > 0) {
        text += fmt::format("… and {} more\n", view.running_left_out);
    }
    return text;
}

std::string explain_all(const LiveView& view) {
    std::string text = fmt::format("{}: {}\n", view.experiment, who_and_when(view));
    text += in_use_line(view);
    if (!view.ended.empty()) {
        text += counts_line(view) + "\n";
    } else if (view.waiting.empty()) {
        text += "no trial waits\n";
    }
    for (const LiveTrial& trial : view.waiting) {
        text += fmt::format("trial {} (first in line): {}\n", to_string(trial.trial), trial.why);
    }
    for (const LiveTrial& trial : view.running) {
        text += fmt::format("trial {}: {}\n", to_string(trial.trial), trial.why);
    }
    return text;
}

/// One trial, from the run's own words where it has some, else from the journal.
std::string explain_one(const ExperimentView& view, const Result<LiveView>& live, TrialId id) {
    const Trial& trial = *view.head->trial(id);
    std::string text = fmt::format("trial {}: ", to_string(id));
    const bool is_live = live.ok() && live->ended.empty() && !is_gone(*live);
    if (is_final(trial.state) || !is_live) {
        text += is_final(trial.state)
                    ? view.head->explain(id, view.last)
                    : "Pending: the experiment does not run now; `muster run` goes on with it";
    } else {
        std::string why = "Pending: it waits behind others that ask for the same";
        for (const auto* trials : {&live->running, &live->waiting}) {
            for (const LiveTrial& known : *trials) {
                why = known.trial == id ? known.why : why;
            }
        }
        text += why;
    }
    text += "\n";
    if (!trial.config.members().empty()) {
        text += "  config: " + to_text(trial.config) + "\n";
    }
    if (trial.progress != nullptr) {
        text += fmt::format(
            "  attempts: {}, failures: {}, reports: {}\n",
            trial.progress->attempts,
            trial.progress->failures,
            trial.progress->results
        );
    }
    return text;
}

}  // namespace

int carry_out(const StatusCommand& command) {
    const Result<ExperimentView> view = open_experiment(command.directory);
    if (!view) {
        return complain(view.error());
    }
    const Result<LiveView> live = read_live_view(view->directory);
    if (!live) {
        return complain(live.error());
    }
    print(command.json ? to_json(*live) : status_text(*live));
    return kExitOk;
}

int carry_out(const ExplainCommand& command) {
    const Result<ExperimentView> view = open_experiment(command.directory);
    if (!view) {
        return complain(view.error());
    }
    const Result<LiveView> live = read_live_view(view->directory);
    if (!command.trial) {
        if (!live) {
            return complain(live.error());
        }
        print(explain_all(*live));
        return kExitOk;
    }
    const Result<TrialId> trial = find_trial(*view, *command.trial);
    if (!trial) {
        return complain(trial.error());
    }
    print(explain_one(*view, live, *trial));
    return kExitOk;
}

}  // namespace muster
