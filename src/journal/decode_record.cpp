// SPDX-License-Identifier: Apache-2.0
//
// decode_record - lines back to facts. Keys that this version does not know are ignored, so that
// later ones may add to a kind.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "muster/value.hpp"

#include "journal/fields.hpp"
#include "journal/names.hpp"
#include "journal/record.hpp"

namespace muster::journal {

std::uint32_t checksum(std::string_view bytes) {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());  // NOLINT
    return static_cast<std::uint32_t>(crc32_z(0, data, bytes.size()));
}

namespace {

Amount amount_of(const Value& value) {
    if (const std::int64_t* whole = value.as_int()) {
        return Amount::whole(*whole);
    }
    const double* real = value.as_real();
    if (real == nullptr || !(std::abs(*real) < 9e14)) {
        throw BadRecord("an amount is not a number in range");
    }
    // In two parts, since the product of a large amount would lose its last digits.
    const double whole = std::floor(*real);
    const auto rest = static_cast<std::int64_t>(std::llround((*real - whole) * 10'000));
    return Amount::whole(static_cast<std::int64_t>(whole)) + Amount::ten_thousandths(rest);
}

AttemptId attempt_of(const Fields& fields) {
    const std::vector<std::string_view> pair = fields.list("attempt");
    if (pair.size() != 2) {
        throw BadRecord("\"attempt\" is not a pair of numbers");
    }
    return {
        Fields::whole_of<std::uint32_t>(pair[0], "attempt"),
        Fields::whole_of<std::uint32_t>(pair[1], "attempt")};
}

TrialId trial_of(const Fields& fields) {
    return TrialId{fields.whole<std::uint32_t>("trial")};
}

double real_of(const Fields& fields, std::string_view key) {
    const std::optional<double> number = value_of(fields.get(key)).number();
    if (!number) {
        throw BadRecord(fmt::format("\"{}\" is not a number", key));
    }
    return *number;
}

TrialResult result_of(const Fields& fields) {
    return {real_of(fields, "step"), Fields(fields.get("metrics")).members()};
}

std::optional<TrialResult> result_of(const Fields& fields, std::string_view key) {
    const std::string_view value = fields.find(key);
    return value.empty() ? std::nullopt : std::optional(result_of(Fields(value)));
}

template <class Enum, class Names>
Enum choice_of(const Fields& fields, std::string_view key, const Names& names) {
    const std::string name = fields.text(key);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw BadRecord(fmt::format("\"{}\" has the unknown value \"{}\"", key, name));
    }
    return static_cast<Enum>(found - names.begin());
}

TrialState state_of(const Fields& fields) {
    const std::string name = fields.text("state");
    for (int index = 0; index <= static_cast<int>(TrialState::Cancelled); ++index) {
        const auto state = static_cast<TrialState>(index);
        if (is_final(state) && to_string(state) == name) {
            return state;
        }
    }
    throw BadRecord(fmt::format("no trial ends as \"{}\"", name));
}

BundlePlacement bundle_of(const Fields& fields) {
    BundlePlacement placed;
    placed.node = NodeId{fields.whole<std::uint32_t>("node")};
    placed.bundle.cpu = amount_of(value_of(fields.get("cpu")));
    placed.bundle.gpu = amount_of(value_of(fields.get("gpu")));
    placed.bundle.memory_bytes = fields.whole<std::int64_t>("memory");
    if (const std::string_view custom = fields.find("custom"); !custom.empty()) {
        for (const ValueMember& member : Fields(custom).members()) {
            placed.bundle.custom.push_back({member.key, amount_of(member.value)});
        }
    }
    for (const std::string_view core : fields.list("cores")) {
        placed.cores.push_back(Fields::whole_of<std::uint32_t>(core, "cores"));
    }
    for (const std::string_view device : fields.list("devices")) {
        const std::vector<std::string_view> pair = items_of(device, "devices");
        if (pair.size() != 2) {
            throw BadRecord("\"devices\" is not a list of pairs");
        }
        placed.devices.push_back(
            {Fields::whole_of<std::uint32_t>(pair[0], "devices"), amount_of(value_of(pair[1]))}
        );
    }
    return placed;
}

Placement placement_of(const Fields& fields) {
    Placement placement;
    for (const std::string_view bundle : fields.list("placement")) {
        placement.bundles.push_back(bundle_of(Fields(bundle)));
    }
    return placement;
}

Outcome outcome_of(const Fields& fields) {
    return {
        choice_of<EndCause>(fields, "cause", kCauses),
        fields.whole<std::int32_t>("code"),
        fields.text_or_empty("detail")};
}

Usage usage_of(const Fields& fields) {
    return {
        Duration{fields.whole<std::int64_t>("wall_ns")},
        Duration{fields.whole<std::int64_t>("cpu_ns")},
        fields.whole<std::int64_t>("max_rss")};
}

AttemptEnded attempt_ended_of(const Fields& fields) {
    AttemptEnded ended;
    ended.trial = trial_of(fields);
    ended.attempt = attempt_of(fields);
    ended.outcome = outcome_of(fields);
    ended.usage = usage_of(fields);
    ended.is_failure = fields.truth("failure");
    return ended;
}

TrialEnded trial_ended_of(const Fields& fields) {
    return {
        trial_of(fields),
        state_of(fields),
        fields.text_or_empty("reason"),
        fields.whole<std::uint64_t>("results"),
        result_of(fields, "last"),
        result_of(fields, "best")};
}

CheckpointKept checkpoint_of(const Fields& fields, TrialId trial) {
    CheckpointKept kept;
    kept.trial = trial;
    kept.attempt = attempt_of(fields);
    kept.number = fields.whole<std::uint32_t>("number");
    kept.step = real_of(fields, "step");
    kept.bytes = fields.whole<std::int64_t>("bytes");
    if (!fields.find("score").empty()) {
        kept.score = real_of(fields, "score");
    }
    kept.node = fields.text_or_empty("node");
    return kept;
}

/// But for the config.
TrialCondensed condensed_of(const Fields& fields) {
    TrialCondensed condensed;
    condensed.trial = trial_of(fields);
    condensed.attempts = fields.whole_or_zero<std::uint32_t>("attempts");
    if (condensed.attempts > 0) {
        condensed.attempt = attempt_of(fields);
        condensed.placement = placement_of(fields);
    }
    condensed.attempts_ended = fields.whole_or_zero<std::uint32_t>("attempts_ended");
    if (condensed.attempts_ended > 0) {
        condensed.failures = fields.whole_or_zero<std::uint32_t>("failures");
        condensed.outcome = outcome_of(fields);
        condensed.usage = usage_of(fields);
    }
    if (!fields.find("state").empty()) {
        condensed.ended = trial_ended_of(fields);
        condensed.ended_at = TimePoint{Duration{fields.whole<std::int64_t>("ended_ns")}};
        condensed.runs_again = fields.truth("runs_again");
    }
    if (!fields.find("paused").empty()) {
        condensed.paused = fields.text("paused");
    }
    condensed.last_checkpoint = fields.whole_or_zero<std::uint32_t>("last_checkpoint");
    for (const std::string_view kept : fields.list("checkpoints")) {
        condensed.checkpoints.push_back(checkpoint_of(Fields(kept), condensed.trial));
    }
    for (const std::string_view number : fields.list("dropped")) {
        condensed.dropped.push_back(Fields::whole_of<std::uint32_t>(number, "dropped"));
    }
    return condensed;
}

Extent extent_of(const Fields& fields) {
    return {fields.whole<std::uint64_t>("first"), fields.whole<std::uint64_t>("last")};
}

Header header_of(const Fields& fields) {
    Header header{
        fields.whole<std::int64_t>("format"), fields.text("muster"), fields.text("experiment")};
    if (!fields.find("lines").empty()) {
        header.condensed = Condensed{extent_of(fields), fields.whole<std::uint64_t>("lines")};
    }
    return header;
}

ResultsIndex index_of(const Fields& fields) {
    ResultsIndex index{fields.whole<std::uint64_t>("bytes"), extent_of(fields), {}};
    for (const std::string_view range : fields.list("trials")) {
        const std::vector<std::string_view> pair = items_of(range, "trials");
        if (pair.size() != 2) {
            throw BadRecord("\"trials\" is not a list of pairs");
        }
        index.trials.push_back(
            {TrialId{Fields::whole_of<std::uint32_t>(pair[0], "trials")},
             TrialId{Fields::whole_of<std::uint32_t>(pair[1], "trials")}}
        );
    }
    return index;
}

/// Everything but configs, which need the reader's schemas.
Fact fact_of(std::size_t kind, const Fields& fields) {
    switch (kind) {
        case 0:
            return RunStarted{fields.whole<std::uint32_t>("epoch")};
        case 1:
            return NodeJoined{
                NodeId{fields.whole<std::uint32_t>("node")},
                fields.text_or_empty("name"),
                fields.whole<std::uint32_t>("incarnation")};
        case 2:
            return TrialCreated{trial_of(fields), Config()};
        case 3:
            return AttemptStarted{trial_of(fields), attempt_of(fields), placement_of(fields)};
        case 4:
            return ResultReported{
                trial_of(fields),
                attempt_of(fields),
                result_of(fields),
                fields.truth("overrun"),
                fields.whole_or_zero<std::uint64_t>("coalesced")};
        case 5:
            return attempt_ended_of(fields);
        case 6:
            return trial_ended_of(fields);
        case 7:
            return RunEnded{
                choice_of<RunEnd>(fields, "end", kRunEnds), fields.text_or_empty("reason")};
        case 8:
            return TrialReopened{trial_of(fields), fields.whole_or_zero<std::uint32_t>("forgiven")};
        case 9:
            return condensed_of(fields);
        case 10:
            return checkpoint_of(fields, trial_of(fields));
        case 11:
            return CheckpointDropped{trial_of(fields), fields.whole<std::uint32_t>("number")};
        case 12:
            return TrialRestarted{trial_of(fields), fields.whole<std::uint32_t>("epoch")};
        case 13:
            return TrialPaused{trial_of(fields), fields.text_or_empty("reason")};
        default:
            throw BadRecord(fmt::format("the kind \"{}\" is unknown", fields.text("kind")));
    }
}

constexpr std::size_t kDigits = 8;

/// The JSON behind a checksum that is right.
std::optional<std::string_view> json_of(std::string_view line) {
    if (line.size() < kDigits + 1 || line[kDigits] != ' ') {
        return std::nullopt;
    }
    std::uint32_t wanted = 0;
    const char* end = line.data() + kDigits;
    const auto [stop, error] = std::from_chars(line.data(), end, wanted, 16);
    const std::string_view json = line.substr(kDigits + 1);
    const bool is_right = error == std::errc{} && stop == end && checksum(json) == wanted;
    return is_right ? std::optional(json) : std::nullopt;
}

std::string_view checked_json(std::string_view line) {
    if (line.size() < kDigits + 1 || line[kDigits] != ' ') {
        throw BadRecord("there is no checksum");
    }
    const std::optional<std::string_view> json = json_of(line);
    if (!json) {
        throw BadRecord("the checksum differs");
    }
    return *json;
}

}  // namespace

Result<Record> RecordReader::read(std::string_view line) {
    try {
        const Fields fields(checked_json(line));
        Record record;
        record.stamp.number = fields.whole<std::uint64_t>("n");
        record.stamp.at = TimePoint{Duration{fields.whole<std::int64_t>("at_ns")}};
        const std::string kind = fields.text("kind");
        if (kind == kHeaderKind) {
            record.content = header_of(fields);
        } else if (kind == kIndexKind) {
            record.content = index_of(fields);
        } else {
            const auto* const found = std::find(kFactKinds.begin(), kFactKinds.end(), kind);
            const auto index = static_cast<std::size_t>(found - kFactKinds.begin());
            Fact fact = fact_of(index, fields);
            if (auto* created = std::get_if<TrialCreated>(&fact)) {
                created->config = config_of(fields.get("config"));
            } else if (auto* condensed = std::get_if<TrialCondensed>(&fact)) {
                const std::string_view config = fields.find("config");
                condensed->config =
                    config.empty() ? std::nullopt : std::optional(config_of(config));
            }
            record.content = std::move(fact);
        }
        return record;
    } catch (const std::exception& problem) {
        return Error{ErrorCode::Corrupt, problem.what()};
    }
}

std::optional<ResultGlance> RecordReader::glance(std::string_view line) {
    const std::optional<std::string_view> json = json_of(line);
    if (!json) {
        return std::nullopt;
    }
    std::string_view rest = *json;
    const auto skip = [&rest](std::string_view wanted) {
        const bool is_there = rest.substr(0, wanted.size()) == wanted;
        rest.remove_prefix(is_there ? wanted.size() : 0);
        return is_there;
    };
    const auto number = [&rest](auto& out) {
        const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
        rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
        return error == std::errc{};
    };
    ResultGlance glance;
    std::int64_t at = 0;
    if (!skip("{\"n\":") || !number(glance.stamp.number) || !skip(",\"at_ns\":") || !number(at) ||
        !skip(",\"utc\":\"")) {
        return std::nullopt;
    }
    const std::size_t utc_end = rest.find('"');
    rest.remove_prefix(std::min(utc_end, rest.size()));
    if (!skip("\",\"kind\":\"result\",\"trial\":") || !number(glance.trial.value) || rest.empty() ||
        rest.front() != ',') {
        return std::nullopt;
    }
    glance.stamp.at = TimePoint{Duration{at}};
    return glance;
}

Config RecordReader::config_of(std::string_view json) {
    std::vector<std::string> keys;
    std::vector<std::optional<Value>> values;
    std::vector<ValueMember> members = Fields(json).members();
    keys.reserve(members.size());
    values.reserve(members.size());
    for (ValueMember& member : members) {
        keys.push_back(std::move(member.key));
        values.emplace_back(std::move(member.value));
    }
    return {schema_for(std::move(keys)), std::move(values)};
}

std::shared_ptr<const ConfigSchema> RecordReader::schema_for(std::vector<std::string> keys) {
    // Spaces with conditions have a few key lists; the latest is the likeliest.
    for (auto schema = schemas_.rbegin(); schema != schemas_.rend(); ++schema) {
        if ((*schema)->keys == keys) {
            return *schema;
        }
    }
    constexpr std::size_t kRemembered = 64;
    if (schemas_.size() == kRemembered) {
        schemas_.erase(schemas_.begin());
    }
    schemas_.push_back(std::make_shared<ConfigSchema>(ConfigSchema{std::move(keys)}));
    return schemas_.back();
}

}  // namespace muster::journal
