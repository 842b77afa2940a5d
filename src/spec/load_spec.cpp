// SPDX-License-Identifier: Apache-2.0

#include "spec/load_spec.hpp"

#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "spec/document.hpp"
#include "spec/problems.hpp"
#include "spec/read_resources.hpp"
#include "spec/read_rules.hpp"
#include "spec/read_saving.hpp"
#include "spec/read_space.hpp"
#include "spec/read_trial.hpp"
#include "spec/section.hpp"
#include "spec/set_values.hpp"
#include "spec/source_text.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// Why an experiment cannot be called so; empty when it can.
std::string wrong_name(const std::string& name) {
    constexpr std::size_t kLongest = 200;
    if (name.empty() || name.front() == '.') {
        return "a name must not be empty or begin with a dot, since it names a directory";
    }
    if (name.find('/') != std::string::npos) {
        return "a name must not hold '/'; storage.path says where the experiment's directory is";
    }
    if (name.find('\n') != std::string::npos || name.find('\t') != std::string::npos) {
        return "a name must be one line without tabs";
    }
    return name.size() > kLongest ? fmt::format("a name has at most {} bytes", kLongest) : "";
}

void read_name(const Section& top, const std::string& path, ExperimentSpec& spec) {
    const YamlNode* node = top.get("name");
    const std::string from_file = fs::path(path).stem().string();
    spec.name = top.text("name").value_or(from_file);
    const std::string wrong = wrong_name(spec.name);
    if (wrong.empty()) {
        return;
    }
    if (node != nullptr) {
        top.problem(*node, "name", fmt::format("'{}': {}", spec.name, wrong));
    } else {
        top.problems().add(
            top.place(), "name", fmt::format("'{}', from the file's name: {}", spec.name, wrong)
        );
    }
}

void read_objective(const Section& top, ExperimentSpec& spec) {
    const std::optional<std::string> metric = top.text("metric");
    const std::optional<Mode> mode =
        top.one_of<Mode>("mode", {{"max", Mode::Max}, {"min", Mode::Min}});
    if (metric && metric->empty()) {
        top.problem(*top.get("metric"), "metric", "expected the name of a metric, found no text");
    }
    if (metric) {
        spec.objective = ObjectiveSpec{*metric, mode.value_or(Mode::Max)};
    } else if (mode && top.get("metric") == nullptr) {
        top.problem(*top.get("mode"), "mode", "there is no `metric` that it could be of");
    }
}

void read_seed(const Section& top, ExperimentSpec& spec) {
    const YamlNode* node = top.get("seed");
    if (node == nullptr) {
        return;
    }
    // Up to 2^64 - 1, which no Value holds.
    const std::string& text = node->text;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), spec.seed);
    if (!node->is_scalar() || node->quoted || problem != std::errc() ||
        end != text.data() + text.size()) {
        top.problem(*node, "seed", expected("a whole number from 0 to 2^64 - 1", *node));
    }
}

void read_samples(const Section& top, ExperimentSpec& spec) {
    constexpr std::string_view kMeaning = "a whole number of 1 or more, or -1 for no end";
    const YamlNode* node = top.get("num_samples");
    spec.num_samples = top.whole("num_samples", {-1, kMeaning}).value_or(spec.num_samples);
    if (spec.num_samples == 0) {
        top.problem(*node, "num_samples", expected(kMeaning, *node));
    }
}

void read_limits(const Section& top, ExperimentSpec& spec) {
    constexpr std::string_view kAtOnce = "a whole number, or 0 for as many as fit";
    spec.max_concurrent_trials =
        top.whole("max_concurrent_trials", {0, kAtOnce}).value_or(spec.max_concurrent_trials);
    spec.time_budget = top.duration("time_budget", false);
    spec.starvation_bound = top.duration("starvation_bound", true).value_or(spec.starvation_bound);
    spec.node_choice =
        top.one_of<NodeChoice>(
               "node_choice", {{"tightest", NodeChoice::Tightest}, {"balance", NodeChoice::Balance}}
        ).value_or(spec.node_choice);
}

void read_storage(const Section& top, const std::string& current_dir, ExperimentSpec& spec) {
    const Section section(top.get("storage"), "storage", "storage", top.problems());
    const std::string path = section.text("path").value_or(spec.storage_path);
    if (path.empty()) {
        section.problem(*section.get("path"), "path", "expected a directory, found no text");
    }
    spec.storage_path = absolute_path(path, current_dir);
}

/// Empty when there is none any more.
std::string current_directory(const LoadOptions& options) {
    if (!options.current_dir.empty()) {
        return options.current_dir;
    }
    std::error_code problem;
    return fs::current_path(problem).string();
}

Error current_directory_is_gone() {
    return {
        ErrorCode::InvalidInput,
        "the current directory is gone; go to one that is there and start again"};
}

ExperimentSpec read_spec(
    const YamlNode& root,
    const std::string& path,
    const std::string& current_dir,
    Problems& problems
) {
    ExperimentSpec spec;
    const Section top(&root, "", "", problems);
    if (!root.is_map() && !root.is_null()) {
        return spec;
    }
    const SpaceReading space = read_space(top.get("space"), problems);
    spec.space = space.space;
    read_name(top, path, spec);
    read_objective(top, spec);
    read_samples(top, spec);
    read_seed(top, spec);
    read_limits(top, spec);
    const std::string spec_dir = fs::path(absolute_path(path, current_dir)).parent_path().string();
    read_trial(top, space.keys(), spec_dir, spec.trial);
    read_resources(top, spec);
    read_search(top, space, spec);
    read_schedule(top, spec);
    read_stop(top, spec);
    read_failures(top, spec);
    read_checkpoints(top, spec);
    read_end(top, spec);
    read_storage(top, current_dir, spec);
    return spec;
}

}  // namespace

Result<ExperimentSpec> parse_spec(
    std::string_view text,
    const std::string& path,
    const std::vector<std::string>& sets,
    const LoadOptions& options
) {
    Problems problems(path, sets);
    YamlNode root;
    if (!read_document(text, root, problems)) {
        return problems.error();
    }
    if (root.is_map() || root.is_null()) {
        apply_sets(sets, root, problems);
    }
    ExperimentSpec spec = read_spec(root, path, current_directory(options), problems);
    if (!problems.empty()) {
        return problems.error();
    }
    if (!fs::path(spec.storage_path).is_absolute()) {
        return current_directory_is_gone();
    }
    return spec;
}

Result<ExperimentSpec> load_spec(
    const std::string& path,
    const std::vector<std::string>& sets,
    const LoadOptions& options
) {
    const std::string absolute = absolute_path(path, current_directory(options));
    if (!fs::path(absolute).is_absolute()) {
        return current_directory_is_gone();
    }
    const Result<std::string> text = read_text_file(absolute);
    if (!text) {
        return text.error();
    }
    return parse_spec(*text, path, sets, options);
}

}  // namespace muster
