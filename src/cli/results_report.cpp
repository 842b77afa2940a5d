// SPDX-License-Identifier: Apache-2.0

#include "cli/results_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/progress.hpp"
#include "cli/text_table.hpp"
#include "head/trial.hpp"

namespace muster {
namespace {

/// The result that stands for a trial: its best, or its last when nothing is optimised or nothing
/// finite was reported.
const TrialResult* shown_result(const Trial& trial) {
    const TrialProgress* progress = trial.progress.get();
    if (progress == nullptr) {
        return nullptr;
    }
    if (progress->best) {
        return &*progress->best;
    }
    return progress->last ? &*progress->last : nullptr;
}

std::optional<double>
objective_of(const Trial& trial, const std::optional<ObjectiveSpec>& objective) {
    const TrialProgress* progress = trial.progress.get();
    if (!objective || progress == nullptr || !progress->best) {
        return std::nullopt;
    }
    return progress->best->metric(objective->metric);
}

/// Names in the order in which they first appear over all trials.
class Columns {
  public:
    void add(const std::string& name) {
        if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
            names_.push_back(name);
        }
    }
    const std::vector<std::string>& names() const { return names_; }

  private:
    std::vector<std::string> names_;
};

struct Headings {
    Columns metrics;
    Columns keys;
};

Headings
headings_of(const Head& head, const ExperimentSpec& spec, const std::vector<TrialId>& trials) {
    Headings headings;
    if (spec.objective) {
        headings.metrics.add(spec.objective->metric);
    }
    for (const TrialId id : trials) {
        const Trial& trial = *head.trial(id);
        if (const TrialResult* result = shown_result(trial)) {
            for (const ValueMember& metric : result->metrics) {
                headings.metrics.add(metric.key);
            }
        }
        if (trial.config.schema() != nullptr) {
            for (const std::string& key : trial.config.schema()->keys) {
                headings.keys.add(key);
            }
        }
    }
    return headings;
}

const Value* metric_value(const TrialResult* result, const std::string& name) {
    if (result == nullptr) {
        return nullptr;
    }
    const auto found = std::find_if(
        result->metrics.begin(),
        result->metrics.end(),
        [&](const ValueMember& metric) { return metric.key == name; }
    );
    return found == result->metrics.end() ? nullptr : &found->value;
}

/// The keys that tell trials apart; all of them for a single trial.
std::vector<std::string> varying_keys(
    const Head& head,
    const std::vector<std::string>& keys,
    const std::vector<TrialId>& trials
) {
    std::vector<std::string> varying;
    for (const std::string& key : keys) {
        const Value* first = head.trial(trials.front())->config.find(key);
        const bool differs =
            trials.size() == 1 || std::any_of(trials.begin(), trials.end(), [&](TrialId id) {
                const Value* value = head.trial(id)->config.find(key);
                return (value == nullptr) != (first == nullptr) ||
                       (value != nullptr && !(*value == *first));
            });
        if (differs) {
            varying.push_back(key);
        }
    }
    return varying;
}

TextTable
as_table(const ExperimentView& view, const Headings& headings, const std::vector<TrialId>& trials) {
    const Head& head = *view.head;
    const bool several_nodes = view.nodes.node_count() > 1;
    std::vector<std::string> names{"trial", "state", "reports", "time", "step"};
    if (several_nodes) {
        names.insert(names.begin() + 2, "node");
    }
    const auto& metrics = headings.metrics.names();
    const std::vector<std::string> keys = varying_keys(head, headings.keys.names(), trials);
    names.insert(names.end(), metrics.begin(), metrics.end());
    names.insert(names.end(), keys.begin(), keys.end());
    TextTable table(names);
    for (const TrialId id : trials) {
        const Trial& trial = *head.trial(id);
        const TrialResult* result = shown_result(trial);
        const TrialProgress* progress = trial.progress.get();
        std::vector<std::string> row{
            to_string(id),
            std::string(to_string(trial.state)),
            std::to_string(progress == nullptr ? 0 : progress->results),
            progress == nullptr ? "" : format_duration(progress->ran),
            result == nullptr ? "" : fmt::format("{}", result->step)};
        if (several_nodes) {
            row.insert(row.begin() + 2, view.nodes.name_of(id));
        }
        for (const std::string& name : metrics) {
            const Value* value = metric_value(result, name);
            row.push_back(value == nullptr ? "" : format_metric(*value));
        }
        for (const std::string& key : keys) {
            const Value* value = trial.config.find(key);
            row.push_back(value == nullptr ? "" : format_metric(*value));
        }
        table.add_row(std::move(row));
    }
    return table;
}

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char letter : text) {
        quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    }
    return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells) {
        line += (line.empty() && &cell == &cells.front() ? "" : ",") + csv_cell(cell);
    }
    return line + "\r\n";
}

std::string csv_value(const Value* value) {
    if (value == nullptr) {
        return "";
    }
    const double* real = value->as_real();
    // A bare nan or inf, as spreadsheets and pandas read it.
    return real != nullptr && !std::isfinite(*real) ? fmt::format("{}", *real)
                                                    : to_argument(*value);
}

std::string
as_csv(const ExperimentView& view, const Headings& headings, const std::vector<TrialId>& trials) {
    const Head& head = *view.head;
    std::vector<std::string> names{
        "trial", "state", "node", "attempts", "failures", "reports", "seconds", "step"};
    for (const std::string& name : headings.metrics.names()) {
        names.push_back(name);
    }
    for (const std::string& key : headings.keys.names()) {
        names.push_back("config/" + key);
    }
    names.emplace_back("reason");
    std::string text = csv_line(names);
    const TrialProgress none;
    for (const TrialId id : trials) {
        const Trial& trial = *head.trial(id);
        const TrialProgress& progress = trial.progress == nullptr ? none : *trial.progress;
        const TrialResult* result = shown_result(trial);
        std::vector<std::string> row{
            to_string(id),
            std::string(to_string(trial.state)),
            view.nodes.name_of(id),
            std::to_string(progress.attempts),
            std::to_string(progress.failures),
            std::to_string(progress.results),
            fmt::format("{:.3f}", seconds(progress.ran)),
            result == nullptr ? "" : fmt::format("{}", result->step)};
        for (const std::string& name : headings.metrics.names()) {
            row.push_back(csv_value(metric_value(result, name)));
        }
        for (const std::string& key : headings.keys.names()) {
            row.push_back(csv_value(trial.config.find(key)));
        }
        row.push_back(progress.reason);
        text += csv_line(row);
    }
    return text;
}

Value result_value(const std::optional<TrialResult>& result) {
    if (!result) {
        return {};
    }
    Value::Map map{{"step", result->step}};
    for (const ValueMember& metric : result->metrics) {
        map.push_back(metric);
    }
    return map;
}

std::string as_json(const ExperimentView& view, const std::vector<TrialId>& trials) {
    const Head& head = *view.head;
    std::string text = "[";
    const TrialProgress none;
    for (const TrialId id : trials) {
        const Trial& trial = *head.trial(id);
        const TrialProgress& progress = trial.progress == nullptr ? none : *trial.progress;
        text += text.size() == 1 ? "\n" : ",\n";
        text += fmt::format(
            R"({{"trial": "{}", "state": "{}", "reason": )", to_string(id), to_string(trial.state)
        );
        append_json(std::string_view(progress.reason), text);
        text += R"(, "node": )";
        append_json(std::string_view(view.nodes.name_of(id)), text);
        text += fmt::format(
            R"(, "attempts": {}, "failures": {}, "reports": {}, "seconds": {:.3f}, "config": {}, "best": {}, "last": {}}})",
            progress.attempts,
            progress.failures,
            progress.results,
            seconds(progress.ran),
            to_json(trial.config),
            to_json(result_value(progress.best)),
            to_json(result_value(progress.last))
        );
    }
    return text + (text.size() == 1 ? "]\n" : "\n]\n");
}

/// What trials did report: a metric by another name is the usual mistake.
std::string reported_instead(const Head& head, const ExperimentSpec& spec) {
    const Headings headings = headings_of(head, spec, trials_by_id(head));
    std::string names;
    // The first is the metric itself.
    for (std::size_t index = 1; index < headings.metrics.names().size(); ++index) {
        names += (index == 1 ? "; reported were " : ", ") + headings.metrics.names()[index];
    }
    return names;
}

}  // namespace

std::vector<TrialId> trials_by_id(const Head& head) {
    std::vector<TrialId> trials;
    for (std::uint32_t value = 0; value < head.trial_count(); ++value) {
        trials.push_back(TrialId{value});
    }
    return trials;
}

std::vector<TrialId>
trials_by_rank(const Head& head, const std::optional<ObjectiveSpec>& objective) {
    std::vector<TrialId> trials = trials_by_id(head);
    std::stable_sort(trials.begin(), trials.end(), [&](TrialId left, TrialId right) {
        const std::optional<double> of_left = objective_of(*head.trial(left), objective);
        const std::optional<double> of_right = objective_of(*head.trial(right), objective);
        if (of_left && of_right) {
            return better(*of_left, *of_right, objective->mode);
        }
        return of_left.has_value() && !of_right.has_value();
    });
    return trials;
}

std::string format_results(
    const ExperimentView& view,
    const std::vector<TrialId>& trials,
    ResultsFormat format,
    std::size_t width
) {
    const auto headings = [&] { return headings_of(*view.head, view.spec, trials); };
    switch (format) {
        case ResultsFormat::Table:
            return as_table(view, headings(), trials).text(width);
        case ResultsFormat::Csv:
            return as_csv(view, headings(), trials);
        case ResultsFormat::Json:
            return as_json(view, trials);
    }
    return "";
}

std::string
format_best(const Head& head, const ExperimentSpec& spec, const std::string& directory) {
    if (!spec.objective) {
        return "no best trial: the spec names no `metric`\n";
    }
    const std::optional<TrialId> best = head.summary().best;
    if (!best) {
        return fmt::format(
            "no best trial: none has reported a finite {}{}\n",
            spec.objective->metric,
            reported_instead(head, spec)
        );
    }
    const Trial& trial = *head.trial(*best);
    const TrialResult& result = *trial.progress->best;
    std::string text = fmt::format(
        "best trial {} ({}): {} {:.6g} at step {}\n",
        to_string(*best),
        to_string(trial.state),
        spec.objective->metric,
        result.metric(spec.objective->metric).value_or(0),
        result.step
    );
    for (const ValueMember& member : trial.config.members()) {
        text += fmt::format("  {}: {}\n", member.key, fit(to_argument(member.value), 200));
    }
    return text + fmt::format("  output: muster logs {} {}\n", directory, to_string(*best));
}

}  // namespace muster
