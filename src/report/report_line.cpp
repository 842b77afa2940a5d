// SPDX-License-Identifier: Apache-2.0

#include "report/report_line.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "report/json_reader.hpp"

namespace muster {
namespace {

/// Everything that a line may hold; what is not for its type is ignored.
struct RawLine {
    std::string type;
    std::optional<std::vector<ValueMember>> metrics;
    Value wait;
    Value protocol;
    Value trial;
    Value attempt;
    Value member;
    Value path;
    Value step;
};

Error corrupt(std::string message) {
    return Error{ErrorCode::Corrupt, std::move(message)};
}

/// The beginning of a text, for messages; it ends with a whole character.
std::string_view shown(std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::size_t end = 0;
    while (end < text.size() && end < kShown) {
        end += std::max(utf8_length(text, end), std::size_t{1});
    }
    return text.substr(0, end);
}

/// Reads the value of `name` into its place; false when the JSON is broken.
bool read_member(JsonReader& reader, std::string_view name, RawLine& out) {
    if (name == "type") {
        out.type.clear();
        return reader.read_text(out.type);
    }
    if (name == "metrics") {
        out.metrics.emplace();
        return reader.read_members(*out.metrics);
    }
    Value ignored;
    Value& place = name == "wait"       ? out.wait
                   : name == "protocol" ? out.protocol
                   : name == "trial"    ? out.trial
                   : name == "attempt"  ? out.attempt
                   : name == "member"   ? out.member
                   : name == "path"     ? out.path
                   : name == "step"     ? out.step
                                        : ignored;
    return reader.read_value(place);
}

void flatten(const std::string& group, const Value& value, std::vector<ValueMember>& out) {
    const Value::Map* map = value.as_map();
    if (map == nullptr) {
        out.push_back({group, value});
        return;
    }
    for (const ValueMember& member : *map) {
        flatten(group + "/" + member.key, member.value, out);
    }
}

std::vector<ValueMember> flatten(std::vector<ValueMember> metrics) {
    bool nested = false;
    for (const ValueMember& metric : metrics) {
        nested = nested || metric.value.as_map() != nullptr;
    }
    if (!nested) {
        return metrics;
    }
    std::vector<ValueMember> flat;
    for (const ValueMember& metric : metrics) {
        flatten(metric.key, metric.value, flat);
    }
    return flat;
}

Result<TrialLine> to_report(RawLine raw) {
    if (!raw.metrics) {
        return corrupt("a report without \"metrics\"");
    }
    const bool* wait = raw.wait.as_bool();
    if (wait == nullptr && !raw.wait.is_null()) {
        return corrupt("a report whose \"wait\" is neither true nor false");
    }
    ReportLine report{flatten(std::move(*raw.metrics)), wait != nullptr && *wait};
    if (report.metrics.empty()) {
        return corrupt("a report needs at least one metric");
    }
    if (has_twins(report.metrics)) {
        return corrupt("a report that names a metric twice");
    }
    for (const ValueMember& metric : report.metrics) {
        if (metric.key.empty()) {
            return corrupt("a report with a metric without a name");
        }
    }
    return TrialLine(std::move(report));
}

Result<TrialLine> to_hello(const RawLine& raw) {
    const std::int64_t* protocol = raw.protocol.as_int();
    const std::string* trial = raw.trial.as_text();
    const std::string* attempt = raw.attempt.as_text();
    const std::int64_t* member = raw.member.as_int();
    if (protocol == nullptr || trial == nullptr || attempt == nullptr ||
        (member == nullptr && !raw.member.is_null())) {
        return corrupt("a hello needs \"protocol\" (a number), \"trial\" and \"attempt\" (texts)");
    }
    Result<MemberKey> key = parse_member(*trial, *attempt, member == nullptr ? 0 : *member);
    if (!key) {
        return key.error();
    }
    return TrialLine(HelloLine{*protocol, *key});
}

Result<TrialLine> to_checkpoint(const RawLine& raw) {
    constexpr std::string_view kFresh = ".new-";
    const std::string* path = raw.path.as_text();
    if (path == nullptr || path->rfind(kFresh, 0) != 0 || path->find('/') != std::string::npos ||
        path->find('\0') != std::string::npos) {
        return corrupt(
            "a checkpoint needs \"path\": the name of a directory in MUSTER_CHECKPOINT_DIR that "
            "begins with .new-"
        );
    }
    CheckpointLine line{*path, std::nullopt};
    if (!raw.step.is_null()) {
        line.step = raw.step.as_bool() != nullptr ? std::nullopt : raw.step.number();
        if (!line.step || !std::isfinite(*line.step)) {
            return corrupt("a checkpoint whose \"step\" is no number");
        }
    }
    return TrialLine(std::move(line));
}

/// The whole of `text` as a number.
bool parse_whole(std::string_view text, std::uint32_t& out) {
    const char* end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, out);
    return result.ec == std::errc() && result.ptr == end && !text.empty();
}

}  // namespace

Result<TrialLine> read_trial_line(std::string_view line) {
    if (const std::optional<std::size_t> place = find_not_utf8(line)) {
        return corrupt(fmt::format("not UTF-8 at byte {}", *place));
    }
    JsonReader reader(line);
    RawLine raw;
    std::string name;
    bool first = true;
    bool good = reader.begin_object();
    while (good && reader.next_name(name, first)) {
        good = read_member(reader, name, raw);
        name.clear();
    }
    if (!good || reader.failed() || !reader.end()) {
        return corrupt("not a line of JSON: " + reader.problem());
    }
    if (raw.type == "report") {
        return to_report(std::move(raw));
    }
    if (raw.type == "hello") {
        return to_hello(raw);
    }
    if (raw.type == "config") {
        return TrialLine(ConfigLine{});
    }
    if (raw.type == "checkpoint") {
        return to_checkpoint(raw);
    }
    if (raw.type == "log") {
        return Error{ErrorCode::NotSupported, "\"log\" is not in this version"};
    }
    return corrupt(fmt::format(
        "unknown type \"{}\"; known: hello, report, checkpoint, log, config", shown(raw.type)
    ));
}

Result<MemberKey>
parse_member(std::string_view trial, std::string_view attempt, std::int64_t member) {
    MemberKey key;
    if (!parse_whole(trial, key.trial.value)) {
        return corrupt(fmt::format("no trial is called \"{}\"", shown(trial)));
    }
    const std::size_t point = attempt.find('.');
    if (point == std::string_view::npos ||
        !parse_whole(attempt.substr(0, point), key.attempt.epoch) ||
        !parse_whole(attempt.substr(point + 1), key.attempt.number)) {
        return corrupt(fmt::format("no attempt is called \"{}\"", shown(attempt)));
    }
    key.member.value = static_cast<std::uint32_t>(member);
    if (std::int64_t{key.member.value} != member) {
        return corrupt(fmt::format("no member is called {}", member));
    }
    return key;
}

std::string welcome_line() {
    return fmt::format("{{\"type\": \"welcome\", \"protocol\": {}}}\n", kReportProtocol);
}

std::string decision_line(std::uint64_t line, bool stop) {
    return fmt::format(
        "{{\"type\": \"decision\", \"line\": {}, \"decision\": \"{}\"}}\n",
        line,
        stop ? "stop" : "continue"
    );
}

std::string config_line(std::uint64_t line, std::string_view config_json) {
    return fmt::format(
        "{{\"type\": \"config\", \"line\": {}, \"config\": {}}}\n", line, config_json
    );
}

std::string checkpoint_line(std::uint64_t line, std::string_view name) {
    return fmt::format(
        "{{\"type\": \"checkpoint\", \"line\": {}, \"name\": \"{}\"}}\n", line, name
    );
}

std::string error_line(std::uint64_t line, std::string_view text, bool closed) {
    std::string out = fmt::format("{{\"type\": \"error\", \"line\": {}, \"text\": ", line);
    append_json(text, out);
    out += closed ? ", \"closed\": true}\n" : ", \"closed\": false}\n";
    return out;
}

std::string stop_line() {
    return "{\"type\": \"stop\"}\n";
}

std::string warning_line(Duration left) {
    const double seconds = std::chrono::duration<double>(left).count();
    return fmt::format("{{\"type\": \"warning\", \"seconds\": {:.3f}}}\n", seconds);
}

}  // namespace muster
