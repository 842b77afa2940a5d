// SPDX-License-Identifier: Apache-2.0
//
// decode_record - lines back to facts. Keys that this version does not know are ignored, so that
// later ones may add to a kind.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "muster/value.hpp"

#include "journal/names.hpp"
#include "journal/record.hpp"

namespace muster::journal {

std::uint32_t checksum(std::string_view bytes) {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());  // NOLINT
    return static_cast<std::uint32_t>(crc32_z(0, data, bytes.size()));
}

namespace {

/// What is wrong with a record. Thrown and caught in this file.
class BadRecord : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Turns the texts of non-finite numbers into these, and takes the apostrophe off others.
void restore_texts(Value& value) {
    if (const std::string* text = value.as_text()) {
        if (const std::optional<double> real = non_finite(*text)) {
            value = Value(*real);
        } else if (looks_non_finite(*text)) {
            value = Value(text->substr(1));
        }
    } else if (const Value::List* list = value.as_list()) {
        Value::List copy = *list;
        std::for_each(copy.begin(), copy.end(), restore_texts);
        value = Value(std::move(copy));
    } else if (const Value::Map* map = value.as_map()) {
        Value::Map copy = *map;
        for (ValueMember& member : copy) {
            restore_texts(member.value);
        }
        value = Value(std::move(copy));
    }
}

Value restored(Value value) {
    restore_texts(value);
    return value;
}

/// One JSON object, read by key.
class Fields {
  public:
    explicit Fields(const Value& value) : map_(value.as_map()) {
        if (map_ == nullptr) {
            throw BadRecord("something is not an object");
        }
    }

    const Value* find(std::string_view key) const {
        const auto found = std::find_if(map_->begin(), map_->end(), [&](const ValueMember& member) {
            return member.key == key;
        });
        return found == map_->end() ? nullptr : &found->value;
    }
    const Value& get(std::string_view key) const {
        const Value* value = find(key);
        if (value == nullptr) {
            throw BadRecord(fmt::format("the key \"{}\" is missing", key));
        }
        return *value;
    }
    template <class Number>
    Number whole(std::string_view key) const {
        return whole_of<Number>(get(key), key);
    }
    /// An absent number is 0.
    template <class Number>
    Number whole_or_zero(std::string_view key) const {
        const Value* value = find(key);
        return value == nullptr ? Number{0} : whole_of<Number>(*value, key);
    }
    const std::string& text(std::string_view key) const {
        const std::string* text = get(key).as_text();
        if (text == nullptr) {
            throw BadRecord(fmt::format("\"{}\" is not a text", key));
        }
        return *text;
    }
    std::string text_or_empty(std::string_view key) const {
        return find(key) == nullptr ? std::string() : text(key);
    }
    bool truth(std::string_view key) const {
        const Value* value = find(key);
        return value != nullptr && value->as_bool() != nullptr && *value->as_bool();
    }
    const Value::List& list(std::string_view key) const {
        static const Value::List none;
        const Value* value = find(key);
        if (value == nullptr) {
            return none;
        }
        if (value->as_list() == nullptr) {
            throw BadRecord(fmt::format("\"{}\" is not a list", key));
        }
        return *value->as_list();
    }
    const Value::Map& members() const { return *map_; }

    template <class Number>
    static Number whole_of(const Value& value, std::string_view key) {
        const std::int64_t* number = value.as_int();
        if (number == nullptr || !std::in_range<Number>(*number)) {
            throw BadRecord(fmt::format("\"{}\" is not a whole number in range", key));
        }
        return static_cast<Number>(*number);
    }

  private:
    const Value::Map* map_;
};

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
    const Value::List& pair = fields.list("attempt");
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

TrialResult result_of(const Fields& fields) {
    const std::optional<double> step = restored(fields.get("step")).number();
    if (!step) {
        throw BadRecord("\"step\" is not a number");
    }
    const Value metrics = restored(fields.get("metrics"));
    return {*step, Fields(metrics).members()};
}

std::optional<TrialResult> result_of(const Fields& fields, std::string_view key) {
    const Value* value = fields.find(key);
    return value == nullptr ? std::nullopt : std::optional(result_of(Fields(*value)));
}

template <class Enum, class Names>
Enum choice_of(const Fields& fields, std::string_view key, const Names& names) {
    const std::string& name = fields.text(key);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw BadRecord(fmt::format("\"{}\" has the unknown value \"{}\"", key, name));
    }
    return static_cast<Enum>(found - names.begin());
}

TrialState state_of(const Fields& fields) {
    for (int index = 0; index <= static_cast<int>(TrialState::Cancelled); ++index) {
        const auto state = static_cast<TrialState>(index);
        if (to_string(state) == fields.text("state")) {
            return state;
        }
    }
    throw BadRecord(fmt::format("the state \"{}\" is unknown", fields.text("state")));
}

BundlePlacement bundle_of(const Fields& fields) {
    BundlePlacement placed;
    placed.node = NodeId{fields.whole<std::uint32_t>("node")};
    placed.bundle.cpu = amount_of(fields.get("cpu"));
    placed.bundle.gpu = amount_of(fields.get("gpu"));
    placed.bundle.memory_bytes = fields.whole<std::int64_t>("memory");
    if (const Value* custom = fields.find("custom")) {
        for (const ValueMember& member : Fields(*custom).members()) {
            placed.bundle.custom.push_back({member.key, amount_of(member.value)});
        }
    }
    for (const Value& core : fields.list("cores")) {
        placed.cores.push_back(Fields::whole_of<std::uint32_t>(core, "cores"));
    }
    for (const Value& device : fields.list("devices")) {
        const Value::List* pair = device.as_list();
        if (pair == nullptr || pair->size() != 2) {
            throw BadRecord("\"devices\" is not a list of pairs");
        }
        placed.devices.push_back(
            {Fields::whole_of<std::uint32_t>((*pair)[0], "devices"), amount_of((*pair)[1])}
        );
    }
    return placed;
}

Placement placement_of(const Fields& fields) {
    Placement placement;
    for (const Value& bundle : fields.list("placement")) {
        placement.bundles.push_back(bundle_of(Fields(bundle)));
    }
    return placement;
}

AttemptEnded attempt_ended_of(const Fields& fields) {
    AttemptEnded ended;
    ended.trial = trial_of(fields);
    ended.attempt = attempt_of(fields);
    ended.outcome.cause = choice_of<EndCause>(fields, "cause", kCauses);
    ended.outcome.code = fields.whole<std::int32_t>("code");
    ended.outcome.detail = fields.text_or_empty("detail");
    ended.usage.wall = Duration{fields.whole<std::int64_t>("wall_ns")};
    ended.usage.cpu = Duration{fields.whole<std::int64_t>("cpu_ns")};
    ended.usage.max_rss_bytes = fields.whole<std::int64_t>("max_rss");
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

/// Everything but trial_created, which needs the reader's schemas.
Fact fact_of(std::size_t kind, const Fields& fields) {
    switch (kind) {
        case 0:
            return RunStarted{fields.whole<std::uint32_t>("epoch")};
        case 1:
            return NodeJoined{
                NodeId{fields.whole<std::uint32_t>("node")},
                fields.text_or_empty("name"),
                fields.whole<std::uint32_t>("incarnation")};
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
        default:
            throw BadRecord(fmt::format("the kind \"{}\" is unknown", fields.text("kind")));
    }
}

/// The JSON behind a checksum that is right.
std::string_view checked_json(std::string_view line) {
    constexpr std::size_t kDigits = 8;
    if (line.size() < kDigits + 1 || line[kDigits] != ' ') {
        throw BadRecord("there is no checksum");
    }
    std::uint32_t wanted = 0;
    const char* end = line.data() + kDigits;
    const auto [stop, error] = std::from_chars(line.data(), end, wanted, 16);
    if (error != std::errc{} || stop != end) {
        throw BadRecord("the checksum is not a number");
    }
    const std::string_view json = line.substr(kDigits + 1);
    if (checksum(json) != wanted) {
        throw BadRecord("the checksum differs");
    }
    return json;
}

}  // namespace

Result<Record> RecordReader::read(std::string_view line) {
    try {
        const Result<Value> json = value_from_json(checked_json(line));
        if (!json.ok()) {
            return json.error();
        }
        const Fields fields(*json);
        Record record;
        record.stamp.number = fields.whole<std::uint64_t>("n");
        record.stamp.at = TimePoint{Duration{fields.whole<std::int64_t>("at_ns")}};
        const std::string& kind = fields.text("kind");
        if (kind == kHeaderKind) {
            record.content = Header{
                fields.whole<std::int64_t>("format"),
                fields.text("muster"),
                fields.text("experiment")};
            return record;
        }
        const auto* const found = std::find(kFactKinds.begin(), kFactKinds.end(), kind);
        if (found == kFactKinds.begin() + 2) {
            std::vector<std::string> keys;
            std::vector<std::optional<Value>> values;
            for (const ValueMember& member : Fields(fields.get("config")).members()) {
                keys.push_back(member.key);
                values.emplace_back(restored(member.value));
            }
            record.content = Fact{TrialCreated{
                trial_of(fields), Config(schema_for(std::move(keys)), std::move(values))}};
        } else {
            const auto index = static_cast<std::size_t>(found - kFactKinds.begin());
            record.content = fact_of(index, fields);
        }
        return record;
    } catch (const std::exception& problem) {
        return Error{ErrorCode::Corrupt, problem.what()};
    }
}

bool RecordReader::may_concern(std::string_view line, TrialId trial) {
    return line.find(fmt::format("\"trial\":{},", trial.value)) != std::string_view::npos;
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
