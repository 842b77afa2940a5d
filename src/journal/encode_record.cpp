// SPDX-License-Identifier: Apache-2.0
//
// encode_record - facts as lines. By hand, since 100,000 results a second come this way.

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "muster/value.hpp"

#include "base/overloaded.hpp"
#include "journal/names.hpp"
#include "journal/record.hpp"

namespace muster::journal {
namespace {

/// Builds `,"key":value` pieces behind the stamp.
class Line {
  public:
    explicit Line(std::string& out) : out_(out) {}

    template <class Number>
    void number(std::string_view key, Number value) {
        begin(key);
        const fmt::format_int digits(value);
        out_.append(digits.data(), digits.size());
    }
    void text(std::string_view key, std::string_view text) {
        begin(key);
        append_json(text, out_);
    }
    void truth(std::string_view key) {
        begin(key);
        out_ += "true";
    }
    void trial(TrialId trial) { number("trial", trial.value); }
    void attempt(AttemptId attempt) {
        begin("attempt");
        out_ += '[';
        digits(attempt.epoch);
        out_ += ',';
        digits(attempt.number);
        out_ += ']';
    }
    void amount(std::string_view key, Amount amount) {
        begin(key);
        amount_value(amount);
    }
    void map(std::string_view key, const std::vector<ValueMember>& members) {
        begin(key);
        members_value(members);
    }
    void config(const Config& config) {
        begin("config");
        out_ += '{';
        bool first = true;
        for (std::size_t index = 0; index < config.values().size(); ++index) {
            if (config.values()[index]) {
                out_ += first ? "" : ",";
                first = false;
                append_json(std::string_view(config.schema()->keys[index]), out_);
                out_ += ':';
                value(*config.values()[index]);
            }
        }
        out_ += '}';
    }
    void result(std::string_view key, const std::optional<TrialResult>& result) {
        if (result) {
            begin(key);
            out_ += "{\"step\":";
            value(Value(result->step));
            out_ += ",\"metrics\":";
            members_value(result->metrics);
            out_ += '}';
        }
    }
    void placement(const Placement& placement) {
        begin("placement");
        out_ += '[';
        for (const BundlePlacement& bundle : placement.bundles) {
            out_ += &bundle == placement.bundles.data() ? "" : ",";
            bundle_value(bundle);
        }
        out_ += ']';
    }
    void extent(const Extent& extent) {
        number("first", extent.first);
        number("last", extent.last);
    }
    void ranges(std::string_view key, const std::vector<TrialRange>& ranges) {
        begin(key);
        out_ += '[';
        for (const TrialRange& range : ranges) {
            out_ += &range == ranges.data() ? "[" : ",[";
            digits(range.first.value);
            out_ += ',';
            digits(range.last.value);
            out_ += ']';
        }
        out_ += ']';
    }
    void usage(const Usage& usage) {
        number("wall_ns", usage.wall.count());
        number("cpu_ns", usage.cpu.count());
        number("max_rss", usage.max_rss_bytes);
    }
    void outcome(const Outcome& outcome) {
        text("cause", name_of(outcome.cause));
        number("code", outcome.code);
        if (!outcome.detail.empty()) {
            text("detail", outcome.detail);
        }
    }
    void ended(const TrialEnded& ended) {
        text("state", to_string(ended.state));
        if (!ended.reason.empty()) {
            text("reason", ended.reason);
        }
        number("results", ended.results);
        result("last", ended.last);
        result("best", ended.best);
    }
    void checkpoint(const CheckpointKept& kept) {
        attempt(kept.attempt);
        number("number", kept.number);
        real("step", kept.step);
        number("bytes", kept.bytes);
        if (kept.score) {
            real("score", *kept.score);
        }
        if (!kept.node.empty()) {
            text("node", kept.node);
        }
    }
    void checkpoints(std::string_view key, const std::vector<CheckpointKept>& all) {
        begin(key);
        out_ += '[';
        for (const CheckpointKept& kept : all) {
            out_ += &kept == all.data() ? "{" : ",{";
            const std::size_t start = out_.size();
            checkpoint(kept);
            // The comma that every piece begins with.
            out_.erase(start, 1);
            out_ += '}';
        }
        out_ += ']';
    }
    void numbers(std::string_view key, const std::vector<std::uint32_t>& numbers) {
        begin(key);
        out_ += '[';
        for (const std::uint32_t& number : numbers) {
            out_ += &number == numbers.data() ? "" : ",";
            digits(number);
        }
        out_ += ']';
    }
    void real(std::string_view key, double number) {
        begin(key);
        value(Value(number));
    }

  private:
    void begin(std::string_view key) {
        out_ += ",\"";
        out_ += key;
        out_ += "\":";
    }
    template <class Number>
    void digits(Number number) {
        const fmt::format_int digits(number);
        out_.append(digits.data(), digits.size());
    }
    void amount_value(Amount amount) {
        if (amount.is_whole()) {
            digits(amount.floor());
        } else {
            append_json(Value(amount.real()), out_);
        }
    }

    /// JSON with the non-finite numbers as texts, and texts that look like them with one more
    /// apostrophe in front, so that each comes back as what it was.
    void value(const Value& value) {
        if (const std::string* text = value.as_text()) {
            if (looks_non_finite(*text)) {
                append_json(std::string_view("'" + *text), out_);
            } else {
                append_json(std::string_view(*text), out_);
            }
        } else if (const Value::List* list = value.as_list()) {
            out_ += '[';
            for (const Value& item : *list) {
                out_ += &item == list->data() ? "" : ",";
                this->value(item);
            }
            out_ += ']';
        } else if (const Value::Map* map = value.as_map()) {
            members_value(*map);
        } else {
            append_json(value, out_);
        }
    }
    void members_value(const std::vector<ValueMember>& members) {
        out_ += '{';
        for (const ValueMember& member : members) {
            out_ += &member == members.data() ? "" : ",";
            append_json(std::string_view(member.key), out_);
            out_ += ':';
            value(member.value);
        }
        out_ += '}';
    }
    void bundle_value(const BundlePlacement& bundle) {
        out_ += "{\"node\":";
        digits(bundle.node.value);
        amount("cpu", bundle.bundle.cpu);
        amount("gpu", bundle.bundle.gpu);
        number("memory", bundle.bundle.memory_bytes);
        if (!bundle.bundle.custom.empty()) {
            begin("custom");
            out_ += '{';
            for (const NamedAmount& custom : bundle.bundle.custom) {
                out_ += &custom == bundle.bundle.custom.data() ? "" : ",";
                append_json(std::string_view(custom.name), out_);
                out_ += ':';
                amount_value(custom.amount);
            }
            out_ += '}';
        }
        begin("cores");
        out_ += '[';
        for (const std::uint32_t& core : bundle.cores) {
            out_ += &core == bundle.cores.data() ? "" : ",";
            digits(core);
        }
        out_ += ']';
        if (!bundle.devices.empty()) {
            begin("devices");
            for (const DeviceShare& share : bundle.devices) {
                out_ += &share == bundle.devices.data() ? "[[" : ",[";
                digits(share.device);
                out_ += ',';
                amount_value(share.share);
                out_ += ']';
            }
            out_ += ']';
        }
        out_ += '}';
    }

    std::string& out_;
};

void append_condensed(const TrialCondensed& condensed, Line& line) {
    line.trial(condensed.trial);
    if (condensed.config) {
        line.config(*condensed.config);
    }
    if (condensed.attempts > 0) {
        line.number("attempts", condensed.attempts);
        line.attempt(condensed.attempt);
        line.placement(condensed.placement);
    }
    if (condensed.attempts_ended > 0) {
        line.number("attempts_ended", condensed.attempts_ended);
        line.outcome(condensed.outcome);
        line.usage(condensed.usage);
        if (condensed.failures > 0) {
            line.number("failures", condensed.failures);
        }
    }
    if (condensed.ended) {
        line.number("ended_ns", condensed.ended_at.since_start.count());
        line.ended(*condensed.ended);
        if (condensed.runs_again) {
            line.truth("runs_again");
        }
    }
    if (condensed.paused) {
        line.text("paused", *condensed.paused);
    }
    if (condensed.last_checkpoint > 0) {
        line.number("last_checkpoint", condensed.last_checkpoint);
    }
    if (!condensed.checkpoints.empty()) {
        line.checkpoints("checkpoints", condensed.checkpoints);
    }
    if (!condensed.dropped.empty()) {
        line.numbers("dropped", condensed.dropped);
    }
}

void append_result(const ResultReported& reported, Line& line) {
    line.trial(reported.trial);
    line.attempt(reported.attempt);
    line.real("step", reported.result.step);
    line.map("metrics", reported.result.metrics);
    if (reported.overrun) {
        line.truth("overrun");
    }
    if (reported.coalesced > 0) {
        line.number("coalesced", reported.coalesced);
    }
}

void append_content(const Fact& fact, Line line) {
    std::visit(
        Overloaded{
            [&](const RunStarted& run) { line.number("epoch", run.epoch); },
            [&](const NodeJoined& joined) {
                line.number("node", joined.node.value);
                line.text("name", joined.name);
                line.number("incarnation", joined.incarnation);
            },
            [&](const TrialCreated& created) {
                line.trial(created.trial);
                line.config(created.config);
            },
            [&](const AttemptStarted& started) {
                line.trial(started.trial);
                line.attempt(started.attempt);
                line.placement(started.placement);
            },
            [&](const ResultReported& reported) { append_result(reported, line); },
            [&](const AttemptEnded& ended) {
                line.trial(ended.trial);
                line.attempt(ended.attempt);
                line.outcome(ended.outcome);
                line.usage(ended.usage);
                if (ended.is_failure) {
                    line.truth("failure");
                }
            },
            [&](const TrialEnded& ended) {
                line.trial(ended.trial);
                line.ended(ended);
            },
            [&](const RunEnded& ended) {
                line.text("end", name_of(ended.end));
                if (!ended.reason.empty()) {
                    line.text("reason", ended.reason);
                }
            },
            [&](const TrialReopened& reopened) {
                line.trial(reopened.trial);
                line.number("forgiven", reopened.forgiven);
            },
            [&](const TrialCondensed& condensed) { append_condensed(condensed, line); },
            [&](const CheckpointKept& kept) {
                line.trial(kept.trial);
                line.checkpoint(kept);
            },
            [&](const CheckpointDropped& dropped) {
                line.trial(dropped.trial);
                line.number("number", dropped.number);
            },
            [&](const TrialRestarted& restarted) {
                line.trial(restarted.trial);
                line.number("epoch", restarted.epoch);
            },
            [&](const TrialPaused& paused) {
                line.trial(paused.trial);
                line.text("reason", paused.reason);
            }},
        fact
    );
}

constexpr std::size_t kChecksumSize = 9;

/// Makes room for the checksum, and writes what every record begins with.
void begin_record(Stamp stamp, std::string_view utc, std::string_view kind, std::string& out) {
    out.append(kChecksumSize, ' ');
    out += "{\"n\":";
    const fmt::format_int number(stamp.number);
    out.append(number.data(), number.size());
    out += ",\"at_ns\":";
    const fmt::format_int at(stamp.at.since_start.count());
    out.append(at.data(), at.size());
    out += ",\"utc\":\"";
    out += utc;
    out += "\",\"kind\":\"";
    out += kind;
    out += '"';
}

void end_record(std::size_t start, std::string& out) {
    out += '}';
    const std::string_view json = std::string_view(out).substr(start + kChecksumSize);
    fmt::format_to(out.data() + start, "{:08x}", checksum(json));
    out += '\n';
}

}  // namespace

void append_record(const Fact& fact, Stamp stamp, std::string_view utc, std::string& out) {
    const std::size_t start = out.size();
    begin_record(stamp, utc, kind_of(fact), out);
    append_content(fact, Line(out));
    end_record(start, out);
}

void append_record(const Header& header, std::string_view utc, std::string& out) {
    const std::size_t start = out.size();
    begin_record({}, utc, kHeaderKind, out);
    Line line(out);
    line.number("format", header.format);
    line.text("muster", header.muster_version);
    line.text("experiment", header.experiment);
    if (header.condensed) {
        line.extent(header.condensed->extent);
        line.number("lines", header.condensed->lines);
    }
    end_record(start, out);
}

void append_record(
    const ResultsIndex& index,
    TimePoint until,
    std::string_view utc,
    std::string& out
) {
    const std::size_t start = out.size();
    begin_record({0, until}, utc, kIndexKind, out);
    Line line(out);
    line.number("bytes", index.bytes);
    line.extent(index.extent);
    line.ranges("trials", index.trials);
    end_record(start, out);
}

}  // namespace muster::journal
