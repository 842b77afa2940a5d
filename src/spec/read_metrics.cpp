// SPDX-License-Identifier: Apache-2.0

#include "spec/read_metrics.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "model/placeholder.hpp"

namespace muster {
namespace {

/// Why `pattern` finds no metric; empty when it does.
std::string wrong_pattern(const std::string& pattern) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    const re2::RE2 expression(pattern, options);
    if (!expression.ok()) {
        const std::string hint = pattern.find("(?<") == std::string::npos
                                     ? std::string()
                                     : "; a named group is written (?P<name>…)";
        return fmt::format("RE2 does not take the expression: {}{}", expression.error(), hint);
    }
    if (expression.NamedCapturingGroups().empty()) {
        return "no group has a name, so no metric is found; write acc=(?P<accuracy>\\S+)";
    }
    return "";
}

MetricPattern read_pattern(const Section& section, const std::vector<std::string>& keys) {
    MetricPattern metric;
    metric.from = section
                      .one_of<MetricSource>(
                          "from", {{"stdout", MetricSource::Stdout}, {"file", MetricSource::File}}
                      )
                      .value_or(metric.from);
    metric.path = section.text("path").value_or("");
    const YamlNode* path = section.get("path");
    if (metric.from == MetricSource::File && path == nullptr) {
        section.problems().add(
            section.place(), section.path_of("path"), "missing; say which file is read"
        );
    }
    if (metric.from == MetricSource::Stdout && path != nullptr) {
        section.problem(*path, "path", "a path needs `from: file`");
    }
    if (path != nullptr) {
        if (const Status status = check_placeholders(metric.path, keys); !status) {
            section.problem(*path, "path", status.error().message);
        }
    }
    metric.pattern = section.text("pattern").value_or("");
    const YamlNode* pattern = section.get("pattern");
    if (pattern == nullptr) {
        section.problems().add(
            section.place(),
            section.path_of("pattern"),
            "missing; a named group is a metric: 'acc=(?P<accuracy>\\S+)'"
        );
    } else if (const std::string wrong = wrong_pattern(metric.pattern); !wrong.empty()) {
        section.problem(*pattern, "pattern", wrong);
    }
    return metric;
}

}  // namespace

void read_metrics(
    const Section& trial,
    const std::vector<std::string>& keys,
    std::vector<MetricPattern>& metrics
) {
    const YamlNode* node = trial.get("metrics");
    if (node == nullptr) {
        return;
    }
    const std::string path = trial.path_of("metrics");
    Problems& problems = trial.problems();
    if (node->is_map()) {
        metrics.push_back(read_pattern({node, path, "trial.metrics", problems}, keys));
        return;
    }
    if (!node->is_list()) {
        trial.problem(*node, "metrics", expected("a map {from: stdout, pattern: …}", *node));
        return;
    }
    for (std::size_t index = 0; index < node->items.size(); ++index) {
        const std::string item = fmt::format("{}[{}]", path, index);
        metrics.push_back(read_pattern({&node->items[index], item, "trial.metrics", problems}, keys)
        );
    }
}

}  // namespace muster
