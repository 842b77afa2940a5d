// SPDX-License-Identifier: Apache-2.0

#include "muster/result_grid.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace muster {
namespace {

/// The values of `metric` in order; a report without it has none.
std::vector<double> values_of(const TrialRecord& trial, const std::string& metric) {
    std::vector<double> values;
    for (const TrialResult& result : trial.results) {
        if (metric == "step") {
            values.push_back(result.step);
        } else if (const std::optional<double> value = result.metric(metric)) {
            values.push_back(*value);
        }
    }
    return values;
}

std::optional<double> best_of(const std::vector<double>& values, Mode mode) {
    std::optional<double> best;
    for (const double value : values) {
        if (!best || better(value, *best, mode)) {
            best = value;
        }
    }
    return best;
}

std::optional<double> mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    return values.empty() ? std::nullopt
                          : std::optional<double>(sum / static_cast<double>(values.size()));
}

/// A field of CSV, by RFC 4180.
std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string out = "\"";
    for (const char letter : text) {
        out += letter == '"' ? "\"\"" : std::string(1, letter);
    }
    return out + "\"";
}

void add_once(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
    }
}

std::string field_of(const std::vector<ValueMember>& members, const std::string& key) {
    for (const ValueMember& member : members) {
        if (member.key == key) {
            return quoted(to_argument(member.value));
        }
    }
    return "";
}

struct Columns {
    std::vector<std::string> metrics;
    std::vector<std::string> keys;
};

Columns columns_of(const std::vector<TrialRecord>& trials) {
    Columns columns;
    for (const TrialRecord& trial : trials) {
        for (const TrialResult& result : trial.results) {
            for (const ValueMember& metric : result.metrics) {
                add_once(columns.metrics, metric.key);
            }
        }
        for (const ValueMember& member : trial.config.members()) {
            add_once(columns.keys, member.key);
        }
    }
    return columns;
}

std::string line_of(const TrialRecord& trial, const TrialResult* result, const Columns& columns) {
    std::string line = trial.id + "," + std::string(to_string(trial.status)) + ",";
    line += result != nullptr ? to_argument(Value(result->step)) : "";
    for (const std::string& metric : columns.metrics) {
        line += "," + (result != nullptr ? field_of(result->metrics, metric) : "");
    }
    const std::vector<ValueMember> config = trial.config.members();
    for (const std::string& key : columns.keys) {
        line += "," + field_of(config, key);
    }
    return line + "," + quoted(trial.error) + "\r\n";
}

}  // namespace

std::string_view to_string(TrialStatus status) {
    switch (status) {
        case TrialStatus::Pending:
            return "Pending";
        case TrialStatus::Paused:
            return "Paused";
        case TrialStatus::Completed:
            return "Completed";
        case TrialStatus::Stopped:
            return "Stopped";
        case TrialStatus::Failed:
            return "Failed";
        case TrialStatus::Cancelled:
            return "Cancelled";
    }
    return "";
}

ResultGrid::ResultGrid(
    std::vector<TrialRecord> trials,
    std::optional<ObjectiveSpec> objective,
    RunEnding ending,
    std::string reason,
    int exit_code,
    std::string directory
)
    : trials_(std::move(trials)),
      objective_(std::move(objective)),
      ending_(ending),
      reason_(std::move(reason)),
      exit_code_(exit_code),
      directory_(std::move(directory)) {}

std::optional<double> ResultGrid::value_of(const TrialRecord& trial, const BestOptions& options)
    const {
    const std::string metric =
        options.metric.empty() && objective_ ? objective_->metric : options.metric;
    const Mode mode = options.mode.value_or(objective_ ? objective_->mode : Mode::Max);
    std::vector<double> values = values_of(trial, metric);
    if (options.scope == Scope::Last && values.size() > 1) {
        values.erase(values.begin(), values.end() - 1);
    }
    if (options.filter_nonfinite) {
        const auto counts = [](double value) { return std::isfinite(value); };
        values.erase(std::partition(values.begin(), values.end(), counts), values.end());
    }
    return options.scope == Scope::Average ? mean_of(values) : best_of(values, mode);
}

const TrialRecord* ResultGrid::best(const BestOptions& options) const {
    const Mode mode = options.mode.value_or(objective_ ? objective_->mode : Mode::Max);
    const TrialRecord* best = nullptr;
    double best_value = 0;
    for (const TrialRecord& trial : trials_) {
        const std::optional<double> value = value_of(trial, options);
        if (value && (best == nullptr || better(*value, best_value, mode))) {
            best = &trial;
            best_value = *value;
        }
    }
    return best;
}

std::vector<const TrialRecord*> ResultGrid::errors() const {
    std::vector<const TrialRecord*> failed;
    for (const TrialRecord& trial : trials_) {
        if (trial.status == TrialStatus::Failed) {
            failed.push_back(&trial);
        }
    }
    return failed;
}

std::string ResultGrid::table(const BestOptions& options) const {
    std::string metric = options.metric.empty() && objective_ ? objective_->metric : options.metric;
    metric = metric.empty() ? "value" : metric;
    std::string text =
        fmt::format("{:<7} {:<10} {:>7} {:>14}  config\n", "trial", "status", "reports", metric);
    for (const TrialRecord& trial : trials_) {
        const std::optional<double> value = value_of(trial, options);
        text += fmt::format(
            "{:<7} {:<10} {:>7} {:>14}  {}{}{}\n",
            trial.id,
            to_string(trial.status),
            trial.results.size(),
            value ? fmt::format("{:.6g}", *value) : "",
            to_text(trial.config),
            trial.error.empty() ? "" : "  # ",
            trial.error.substr(0, trial.error.find('\n'))
        );
    }
    return text;
}

std::string ResultGrid::csv() const {
    const Columns columns = columns_of(trials_);
    std::string text = "trial,status,step";
    for (const std::string& metric : columns.metrics) {
        text += "," + quoted(metric);
    }
    for (const std::string& key : columns.keys) {
        text += "," + quoted("config/" + key);
    }
    text += ",error\r\n";
    for (const TrialRecord& trial : trials_) {
        if (trial.results.empty()) {
            text += line_of(trial, nullptr, columns);
        }
        for (const TrialResult& result : trial.results) {
            text += line_of(trial, &result, columns);
        }
    }
    return text;
}

}  // namespace muster
