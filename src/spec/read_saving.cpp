// SPDX-License-Identifier: Apache-2.0

#include "spec/read_saving.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace muster {
namespace {

/// Signals that a program may take as a warning. KILL and STOP can't be; ends of its own faults
/// must not be.
constexpr std::array<Named<std::int32_t>, 9> kSignals{{
    {"none", 0},
    {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},
    {"TERM", SIGTERM},
    {"INT", SIGINT},
    {"HUP", SIGHUP},
    {"CONT", SIGCONT},
    {"URG", SIGURG},
    {"WINCH", SIGWINCH},
}};

std::optional<std::int64_t> read_bytes(const Section& section, std::string_view key) {
    const YamlNode* node = section.get(key);
    if (node == nullptr) {
        return std::nullopt;
    }
    if (!node->is_scalar()) {
        section.problem(*node, key, expected("bytes such as 50GiB", *node));
        return std::nullopt;
    }
    const Result<std::int64_t> bytes = parse_bytes(node->text);
    if (!bytes) {
        section.problem(*node, key, bytes.error().message);
        return std::nullopt;
    }
    return *bytes;
}

void read_keep(const Section& section, CheckpointOptions& options) {
    const std::optional<std::int64_t> keep =
        section.whole("keep", {0, "a whole number, or 0 for all"});
    if (keep) {
        constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
        options.keep = static_cast<std::uint32_t>(std::min(*keep, kMost));
    }
}

void read_score(const Section& section, const ExperimentSpec& spec, CheckpointOptions& options) {
    const std::optional<std::string> score = section.text("score");
    const std::optional<Mode> mode =
        section.one_of<Mode>("mode", {{"max", Mode::Max}, {"min", Mode::Min}});
    if (!score) {
        if (mode) {
            section.problem(
                *section.get("mode"), "mode", "there is no checkpoints.score that it could be of"
            );
        }
        return;
    }
    if (score->empty()) {
        section.problem(
            *section.get("score"), "score", "expected the name of a metric, found no text"
        );
    }
    options.score = *score;
    const bool is_objective = spec.objective && spec.objective->metric == *score;
    options.mode = mode.value_or(is_objective ? spec.objective->mode : Mode::Max);
}

void read_place(const Section& section, CheckpointOptions& options) {
    options.storage =
        section
            .one_of<CheckpointStorage>(
                "storage",
                {{"shared", CheckpointStorage::Shared}, {"node", CheckpointStorage::Node}}
            )
            .value_or(options.storage);
    options.path = section.text("path").value_or("");
    const YamlNode* path = section.get("path");
    if (path == nullptr) {
        return;
    }
    if (options.path.empty() || options.path.front() != '/') {
        section.problem(
            *path,
            "path",
            fmt::format(
                "'{}' is not absolute; give a directory that every node has, such as "
                "/local/scratch",
                options.path
            )
        );
    } else if (options.storage == CheckpointStorage::Shared) {
        section.problem(
            *path, "path", "it is for `storage: node`; shared checkpoints lie below storage.path"
        );
    }
}

}  // namespace

void read_checkpoints(const Section& top, ExperimentSpec& spec) {
    const Section section(top.get("checkpoints"), "checkpoints", "checkpoints", top.problems());
    read_keep(section, spec.checkpoints);
    read_score(section, spec, spec.checkpoints);
    spec.checkpoints.budget_bytes =
        read_bytes(section, "budget").value_or(spec.checkpoints.budget_bytes);
    read_place(section, spec.checkpoints);
}

void read_end(const Section& top, ExperimentSpec& spec) {
    const Section section(top.get("end"), "end", "end", top.problems());
    spec.end.warning = section.duration("warning", true).value_or(spec.end.warning);
    spec.end.min_slice = section.duration("min_slice", true).value_or(spec.end.min_slice);
    const std::optional<std::string> name = section.text("signal");
    if (!name) {
        return;
    }
    const std::string bare = name->substr(0, 3) == "SIG" ? name->substr(3) : *name;
    const auto* const found =
        std::find_if(kSignals.begin(), kSignals.end(), [&](const Named<std::int32_t>& signal) {
            return signal.name == bare;
        });
    if (found != kSignals.end()) {
        spec.end.signal = found->value;
        return;
    }
    std::vector<std::string> names;
    names.reserve(kSignals.size());
    for (const Named<std::int32_t>& signal : kSignals) {
        names.emplace_back(signal.name);
    }
    const YamlNode& node = *section.get("signal");
    section.problem(node, "signal", expected(listed(names, "or"), node));
}

std::string signal_text(std::int32_t signal) {
    for (const Named<std::int32_t>& known : kSignals) {
        if (known.value == signal) {
            return std::string(known.name);
        }
    }
    return std::to_string(signal);
}

}  // namespace muster
