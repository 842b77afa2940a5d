// SPDX-License-Identifier: Apache-2.0

#include "spec/resolved_spec.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "base/time.hpp"
#include "spec/read_saving.hpp"
#include "spec/scalar.hpp"
#include "spec/yaml_text.hpp"

namespace muster {
namespace {

/// A flow map or list under construction.
class Flow {
  public:
    void add(std::string_view key, const std::string& yaml) {
        text_ += (text_.empty() ? "" : ", ") + yaml_text(key) + ": " + yaml;
    }
    void add(const std::string& yaml) { text_ += (text_.empty() ? "" : ", ") + yaml; }

    std::string map() const { return "{" + text_ + "}"; }
    std::string list() const { return "[" + text_ + "]"; }

  private:
    std::string text_;
};

std::string texts_yaml(const std::vector<std::string>& texts) {
    Flow list;
    for (const std::string& text : texts) {
        list.add(yaml_text(text));
    }
    return list.list();
}

std::string duration_yaml(const std::optional<Duration>& duration) {
    return duration ? duration_text(*duration) : "null";
}

std::string bound(double number) {
    return yaml_value(Value(number));
}

std::string real_domain(const RealDomain& domain) {
    Flow arguments;
    arguments.add(bound(domain.lower));
    arguments.add(bound(domain.upper));
    if (domain.q > 0) {
        arguments.add(bound(domain.q));
    }
    return fmt::format(
        "{}{}uniform: {}", domain.q > 0 ? "q" : "", domain.log ? "log" : "", arguments.list()
    );
}

std::string whole_domain(const IntDomain& domain) {
    Flow arguments;
    arguments.add(fmt::format("{}", domain.lower));
    arguments.add(fmt::format("{}", domain.upper));
    if (domain.q > 0) {
        arguments.add(fmt::format("{}", domain.q));
    }
    return fmt::format(
        "{}{}randint: {}", domain.q > 0 ? "q" : "", domain.log ? "log" : "", arguments.list()
    );
}

std::string normal_domain(const NormalDomain& domain) {
    Flow arguments;
    arguments.add(bound(domain.mean));
    arguments.add(bound(domain.sd));
    if (domain.q > 0) {
        arguments.add(bound(domain.q));
    }
    return fmt::format("{}randn: {}", domain.q > 0 ? "q" : "", arguments.list());
}

std::string conditions_yaml(const Conditions& conditions) {
    Flow map;
    for (const Condition& condition : conditions) {
        map.add(condition.key, yaml_value(Value(Value::List(condition.any_of))));
    }
    return map.map();
}

/// "uniform: [0.0, 1.0]".
std::string domain_yaml(const Domain& domain) {
    return std::visit(
        Overloaded{
            [](const Constant& constant) { return "constant: " + yaml_value(constant.value); },
            [](const RealDomain& real) { return real_domain(real); },
            [](const IntDomain& whole) { return whole_domain(whole); },
            [](const NormalDomain& normal) { return normal_domain(normal); },
            [](const Choice& choice) { return "choice: " + yaml_value(Value(choice.values)); },
            [](const Grid& grid) { return "grid: " + yaml_value(Value(grid.values)); },
            [](const Expression& expression) { return "expr: " + yaml_text(expression.text); },
            [](const SampleFrom& function) {
                return "function: " + texts_yaml(function.depends_on);
            },
        },
        domain
    );
}

std::string parameter_yaml(const Parameter& parameter) {
    const auto* constant = std::get_if<Constant>(&parameter.domain);
    if (constant != nullptr && constant->value.as_map() == nullptr && parameter.when.empty()) {
        return yaml_value(constant->value);
    }
    std::string when;
    if (!parameter.when.empty()) {
        when = ", when: " + conditions_yaml(parameter.when);
    }
    return "{" + domain_yaml(parameter.domain) + when + "}";
}

void add_amounts(const ResourceSet& resources, Flow& map) {
    if (!resources.cpu.is_zero()) {
        map.add("cpu", to_string(resources.cpu));
    }
    if (!resources.gpu.is_zero()) {
        map.add("gpu", to_string(resources.gpu));
    }
    if (resources.memory_bytes != 0) {
        map.add("memory", fmt::format("{}", resources.memory_bytes));
    }
    for (const NamedAmount& custom : resources.custom) {
        map.add(custom.name, to_string(custom.amount));
    }
}

std::string amounts_yaml(const ResourceSet& resources) {
    Flow map;
    add_amounts(resources, map);
    return map.map();
}

std::string group_yaml(const PlacementGroupSpec& group) {
    Flow bundles;
    for (const Bundle& bundle : group.bundles) {
        bundles.add(amounts_yaml(bundle));
    }
    Flow map;
    map.add("bundles", bundles.list());
    map.add("strategy", std::string(to_string(group.strategy)));
    return map.map();
}

std::string alternative_yaml(const ResourceAlternative& alternative) {
    Flow map;
    if (!alternative.when.empty()) {
        map.add("when", conditions_yaml(alternative.when));
    }
    const PlacementGroupSpec& group = alternative.group;
    if (group.bundles.size() != 1 || group.strategy != PlacementStrategy::Pack) {
        map.add("placement_group", group_yaml(group));
    } else if (group.bundles[0].is_zero()) {
        // Without amounts it would be the default of one CPU.
        map.add("cpu", "0");
    } else {
        add_amounts(group.bundles[0], map);
    }
    return map.map();
}

std::string custom_yaml(const std::vector<NamedAmount>& amounts) {
    return amounts_yaml(ResourceSet{.custom = amounts});
}

std::string metric_yaml(const MetricPattern& metric) {
    Flow map;
    const bool from_file = metric.from == MetricSource::File;
    map.add("from", from_file ? "file" : "stdout");
    if (from_file) {
        map.add("path", yaml_text(metric.path));
    }
    map.add("pattern", yaml_text(metric.pattern));
    return map.map();
}

std::string_view name_of(TrialDir trial_dir) {
    switch (trial_dir) {
        case TrialDir::Auto:
            return "auto";
        case TrialDir::Always:
            return "always";
        case TrialDir::Never:
            return "never";
    }
    return "";
}

std::string_view name_of(OutputMode output) {
    switch (output) {
        case OutputMode::File:
            return "file";
        case OutputMode::Stream:
            return "stream";
        case OutputMode::Pty:
            return "pty";
        case OutputMode::Discard:
            return "discard";
    }
    return "";
}

std::string metrics_yaml(const std::vector<MetricPattern>& metrics) {
    Flow list;
    for (const MetricPattern& metric : metrics) {
        list.add(metric_yaml(metric));
    }
    return list.list();
}

void append_trial(const TrialSpec& trial, std::string& out) {
    Flow env;
    for (const EnvironmentVariable& variable : trial.env) {
        env.add(variable.name, yaml_text(variable.value));
    }
    Flow files;
    for (const TemplateFile& file : trial.files) {
        Flow map;
        if (!file.source.empty()) {
            map.add("source", yaml_text(file.source));
        }
        map.add("content", yaml_text(file.content));
        files.add(file.target, map.map());
    }
    out += "trial:\n";
    if (!trial.command.empty()) {
        out += "  command: " + texts_yaml(trial.command) + "\n";
    } else if (!trial.function.empty()) {
        out += "  function: " + yaml_text(trial.function) + "\n";
    } else {
        out += "  shell: " + yaml_text(trial.shell) + "\n";
    }
    const std::string workdir = trial.workdir_is_trial_dir ? "trial" : yaml_text(trial.workdir);
    out += "  env: " + env.map() + "\n";
    out += "  files: " + files.map() + "\n";
    out += "  workdir: " + workdir + "\n";
    out += fmt::format("  trial_dir: {}\n", name_of(trial.trial_dir));
    out += fmt::format("  output: {}\n", name_of(trial.output));
    out += "  time_limit: " + duration_yaml(trial.time_limit) + "\n";
    out += "  report_timeout: " + duration_yaml(trial.report_timeout) + "\n";
    out += "  grace: " + duration_yaml(trial.grace) + "\n";
    out += "  launch: single\n";
    out += "  metrics: " + metrics_yaml(trial.metrics) + "\n";
    out += "  keep_env: " + texts_yaml(trial.keep_env) + "\n";
    out += "  drop_env: " + texts_yaml(trial.drop_env) + "\n";
}

std::string space_yaml(const SearchSpace& space) {
    if (space.parameters.empty()) {
        return "space: {}\n";
    }
    std::string out = "space:\n";
    for (const Parameter& parameter : space.parameters) {
        const bool is_function = std::holds_alternative<SampleFrom>(parameter.domain);
        out += fmt::format(
            "  {}{}: {}\n",
            is_function ? "# " : "",
            yaml_text(parameter.key),
            parameter_yaml(parameter)
        );
    }
    return out;
}

void append_resources(const ExperimentSpec& spec, std::string& out) {
    out += spec.resources_of ? "# resources: by a function of the program\n" : "resources:\n";
    for (const ResourceAlternative& alternative : spec.resources) {
        if (!spec.resources_of) {
            out += "  - " + alternative_yaml(alternative) + "\n";
        }
    }
    Flow nodes;
    for (const NodeResources& node : spec.nodes) {
        nodes.add(node.nodes, custom_yaml(node.resources));
    }
    out += "cluster_resources: " + custom_yaml(spec.cluster_resources) + "\n";
    out += "nodes: " + nodes.map() + "\n";
    out += "reserve: " + amounts_yaml(spec.reserve) + "\n";
    out += fmt::format(
        "node_choice: {}\n", spec.node_choice == NodeChoice::Balance ? "balance" : "tightest"
    );
    out += "starvation_bound: " + duration_yaml(spec.starvation_bound) + "\n";
}

std::string points_yaml(const SearchOptions& search) {
    Flow points;
    for (const std::vector<ValueMember>& point : search.points) {
        points.add(yaml_value(Value(Value::Map(point))));
    }
    return points.list();
}

std::string_view name_of(SearchAlgorithm algorithm) {
    switch (algorithm) {
        case SearchAlgorithm::Random:
            return "random";
        case SearchAlgorithm::Grid:
            return "grid";
    }
    return "";
}

std::string stop_yaml(const std::vector<StopRule>& rules) {
    Flow map;
    for (const StopRule& rule : rules) {
        const std::string_view sign = rule.comparison == Comparison::AtLeast ? ">=" : "<=";
        map.add(rule.metric, fmt::format("\"{} {}\"", sign, bound(rule.bound)));
    }
    return map.map();
}

void append_saving(const ExperimentSpec& spec, std::string& out) {
    const CheckpointOptions& options = spec.checkpoints;
    Flow checkpoints;
    checkpoints.add("keep", std::to_string(options.keep));
    if (!options.score.empty()) {
        checkpoints.add("score", yaml_text(options.score));
        checkpoints.add("mode", options.mode == Mode::Max ? "max" : "min");
    }
    if (options.budget_bytes > 0) {
        checkpoints.add("budget", std::to_string(options.budget_bytes));
    }
    const bool on_nodes = options.storage == CheckpointStorage::Node;
    checkpoints.add("storage", on_nodes ? "node" : "shared");
    if (on_nodes && !options.path.empty()) {
        checkpoints.add("path", yaml_text(options.path));
    }
    Flow end;
    end.add("warning", duration_yaml(spec.end.warning));
    end.add("min_slice", duration_yaml(spec.end.min_slice));
    end.add("signal", signal_text(spec.end.signal));
    out += "checkpoints: " + checkpoints.map() + "\n";
    out += "end: " + end.map() + "\n";
}

std::string metric_of(const ExperimentSpec& spec) {
    return spec.objective ? yaml_text(spec.objective->metric) : "null";
}

std::string mode_of(const ExperimentSpec& spec) {
    return spec.objective ? (spec.objective->mode == Mode::Max ? "max" : "min") : "null";
}

Error differs(const std::string& key, const std::string& before, const std::string& after) {
    return {
        ErrorCode::Conflict,
        fmt::format(
            "{}: the experiment was begun {}, now it is {}; one that goes on keeps its space, "
            "seed, "
            "metric, mode and search",
            key,
            before.empty() ? "without it" : "with " + before,
            after.empty() ? "not there" : after
        )};
}

/// Keys with what stands for them, compared in order.
using Lines = std::vector<std::pair<std::string, std::string>>;

Status compare_lines(const Lines& before, const Lines& after) {
    const auto find = [](const Lines& lines, const std::string& key) {
        const auto found = std::find_if(lines.begin(), lines.end(), [&](const auto& line) {
            return line.first == key;
        });
        return found == lines.end() ? std::string() : found->second;
    };
    for (const auto& [key, text] : before) {
        if (const std::string now = find(after, key); now != text) {
            return differs(key, text, now);
        }
    }
    for (const auto& [key, text] : after) {
        if (const std::string then = find(before, key); then != text) {
            return differs(key, then, text);
        }
    }
    for (std::size_t index = 0; index < before.size(); ++index) {
        if (before[index].first != after[index].first) {
            return Error{
                ErrorCode::Conflict,
                fmt::format(
                    "{}: it stands where {} stood, and the order of keys decides what is drawn",
                    after[index].first,
                    before[index].first
                )};
        }
    }
    return Ok{};
}

Lines identity_of(const ExperimentSpec& spec) {
    Lines lines{
        {"seed", fmt::format("{}", spec.seed)},
        {"metric", metric_of(spec)},
        {"mode", mode_of(spec)},
        {"search.algorithm", std::string(name_of(spec.search.algorithm))},
        {"search.points", points_yaml(spec.search)}};
    for (const Parameter& parameter : spec.space.parameters) {
        lines.emplace_back("space." + parameter.key, parameter_yaml(parameter));
    }
    return lines;
}

}  // namespace

std::string resolved_yaml(const ExperimentSpec& spec) {
    std::string out = fmt::format(
        "name: {}\nmetric: {}\nmode: {}\nnum_samples: {}\nseed: {}\nmax_concurrent_trials: {}\n"
        "time_budget: {}\n",
        yaml_text(spec.name),
        metric_of(spec),
        mode_of(spec),
        spec.num_samples,
        spec.seed,
        spec.max_concurrent_trials,
        duration_yaml(spec.time_budget)
    );
    append_trial(spec.trial, out);
    out += space_yaml(spec.space);
    append_resources(spec, out);
    out += fmt::format(
        "search: {{algorithm: {}, points: {}}}\n",
        name_of(spec.search.algorithm),
        points_yaml(spec.search)
    );
    out += "schedule: {algorithm: fifo, time_attr: " + yaml_text(spec.trial.time_attr) + "}\n";
    out += "stop: " + stop_yaml(spec.stop) + "\n";
    out += fmt::format(
        "failures: {{max_failures: {}, fail_fast: {}}}\n",
        spec.failures.max_failures,
        spec.failures.fail_fast
    );
    append_saving(spec, out);
    out += "storage: {path: " + yaml_text(spec.storage_path) + "}\n";
    return out;
}

Status compare_for_continue(const ExperimentSpec& before, const ExperimentSpec& after) {
    return compare_lines(identity_of(before), identity_of(after));
}

}  // namespace muster
