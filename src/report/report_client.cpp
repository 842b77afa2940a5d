// SPDX-License-Identifier: Apache-2.0

#include "report/report_client.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "muster/trial.hpp"

namespace muster {
namespace {

constexpr std::chrono::seconds kPatience{15};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    if (text.size() > 1 && text.front() == '+' && text[1] != '-') {
        text.remove_prefix(1);
    }
    Number number = 0;
    const char* end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, number);
    const bool good = result.ec == std::errc() && result.ptr == end && !text.empty();
    return good ? std::optional<Number>(number) : std::nullopt;
}

Value parse_value(std::string_view text) {
    if (text == "true" || text == "false") {
        return text == "true";
    }
    if (const std::optional<std::int64_t> whole = parse_number<std::int64_t>(text)) {
        return *whole;
    }
    if (const std::optional<double> real = parse_number<double>(text)) {
        return *real;
    }
    return std::string(text);
}

trial::Metric to_metric(const ValueMember& member) {
    if (const bool* truth = member.value.as_bool()) {
        return {member.key, *truth};
    }
    if (const std::int64_t* whole = member.value.as_int()) {
        return {member.key, *whole};
    }
    if (const double* real = member.value.as_real()) {
        return {member.key, *real};
    }
    return {member.key, to_argument(member.value)};
}

ClientOutcome bad_input(const std::string& message) {
    return ClientOutcome{2, "", "muster: " + message + "\n"};
}

/// "augment/flip" in nested maps; a name that holds a '/' itself is found as well.
const Value* find(const Value& group, std::string_view key) {
    const Value::Map* map = group.as_map();
    if (map == nullptr) {
        return nullptr;
    }
    for (const ValueMember& member : *map) {
        if (member.key == key) {
            return &member.value;
        }
        const bool inside = key.size() > member.key.size() && key[member.key.size()] == '/' &&
                            key.substr(0, member.key.size()) == member.key;
        const Value* found =
            inside ? find(member.value, key.substr(member.key.size() + 1)) : nullptr;
        if (found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

std::string known_keys(const std::string& json) {
    std::string keys;
    for (const trial::Field& field : trial::parse_fields(json).value_or(trial::Fields{})) {
        keys += (keys.empty() ? "" : ", ") + field.name;
    }
    return keys.empty() ? "it has none" : "it has " + keys;
}

}  // namespace

Result<std::vector<ValueMember>> parse_metrics(const std::vector<std::string>& arguments) {
    std::vector<ValueMember> metrics;
    for (const std::string& argument : arguments) {
        const std::size_t equals = argument.find('=');
        if (equals == std::string::npos || equals == 0) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no metric: write name=value, as in loss=0.31", argument)};
        }
        std::string name = argument.substr(0, equals);
        for (const ValueMember& metric : metrics) {
            if (metric.key == name) {
                return Error{ErrorCode::InvalidInput, fmt::format("\"{}\" is given twice", name)};
            }
        }
        metrics.push_back({std::move(name), parse_value(argument.substr(equals + 1))});
    }
    return metrics;
}

ClientOutcome report_command(const std::vector<std::string>& arguments, bool wait) {
    const Result<std::vector<ValueMember>> parsed = parse_metrics(arguments);
    if (!parsed) {
        return bad_input(parsed.error().message);
    }
    if (parsed->empty()) {
        return bad_input("nothing to report: write name=value, as in muster report loss=0.31");
    }
    if (!trial::active()) {
        std::string text = "muster: not under muster:";
        for (const ValueMember& metric : *parsed) {
            text += " " + metric.key + "=" + to_argument(metric.value);
        }
        return ClientOutcome{0, wait ? "continue\n" : "", text + "\n"};
    }
    trial::Metrics metrics;
    for (const ValueMember& metric : *parsed) {
        metrics.push_back(to_metric(metric));
    }
    trial::Reporter reporter({kPatience, kPatience, true});
    ClientOutcome outcome;
    if (wait) {
        const bool stop = reporter.report_and_wait(metrics) == trial::Decision::Stop;
        outcome.out = stop ? "stop\n" : "continue\n";
    } else {
        reporter.report(metrics);
    }
    if (!reporter.finish()) {
        return ClientOutcome{1, "", "muster: " + reporter.last_problem() + "\n"};
    }
    return outcome;
}

ClientOutcome checkpoint_command(const std::string& directory, const std::string& step) {
    const std::optional<double> number = parse_number<double>(step);
    if (!step.empty() && (!number || !std::isfinite(*number))) {
        return bad_input(fmt::format("--step: \"{}\" is no number", step));
    }
    if (std::error_code failed; !std::filesystem::is_directory(directory, failed)) {
        return bad_input(fmt::format(
            "cannot save '{}': {}",
            directory,
            failed ? failed.message() : "a checkpoint is a directory, and this is none"
        ));
    }
    trial::Reporter reporter({kPatience, kPatience, true});
    const trial::Checkpoint saved = trial::detail::save_checkpoint(reporter, directory, number);
    if (!saved && trial::active()) {
        return ClientOutcome{1, "", "muster: not saved: " + saved.problem + "\n"};
    }
    return ClientOutcome{
        0,
        saved.path + "\n",
        saved ? "" : fmt::format("muster: not under muster: {} stays where it is\n", directory)};
}

ClientOutcome get_command(std::string_view key) {
    const std::string path = trial::detail::environment("MUSTER_CONFIG");
    if (path.empty()) {
        return bad_input("not under muster, so there is no config (MUSTER_CONFIG is not set)");
    }
    std::ifstream file(path, std::ios::binary);
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    const Result<Value> config = value_from_json(json);
    if (!config) {
        return bad_input(fmt::format("cannot read {}: {}", path, config.error().message));
    }
    const Value* found = key.empty() ? &*config : find(*config, key);
    if (found == nullptr) {
        return bad_input(fmt::format("the config has no \"{}\"; {}", key, known_keys(json)));
    }
    return ClientOutcome{0, to_argument(*found) + "\n", ""};
}

}  // namespace muster
