// SPDX-License-Identifier: Apache-2.0
#include "process/frames.hpp"

#include <cstring>
#include <type_traits>
#include <utility>

namespace muster {
namespace {

enum class Kind : std::uint8_t {
    Environment,
    Launch,
    End,
    Bind,
    Signal,
    Started,
    Reports,
    Remark,
    Ended,
};

enum class ValueKind : std::uint8_t { Null, Bool, Int, Real, Text };

class Writer {
  public:
    Writer(Kind kind, std::string& out) : out_(out), begin_(out.size()) {
        put(std::uint32_t{0});
        put(kind);
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    /// Fills in the length.
    ~Writer() {
        const auto length =
            static_cast<std::uint32_t>(out_.size() - begin_ - sizeof(std::uint32_t));
        std::memcpy(out_.data() + begin_, &length, sizeof length);
    }

    template <class T>
    void put(T value) {
        static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
        char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        out_.append(bytes, sizeof bytes);
    }
    void put(Duration duration) { put(std::int64_t{duration.count()}); }
    void put_size(std::size_t size) { put(static_cast<std::uint32_t>(size)); }
    void put(const std::string& text) {
        put_size(text.size());
        out_ += text;
    }
    void put(const std::vector<std::string>& texts) {
        put_size(texts.size());
        for (const std::string& text : texts) {
            put(text);
        }
    }
    void put(const std::vector<std::uint32_t>& numbers) {
        put_size(numbers.size());
        for (const std::uint32_t number : numbers) {
            put(number);
        }
    }

  private:
    std::string& out_;
    std::size_t begin_;
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    /// Everything was there, and nothing more.
    bool done() const { return good_ && bytes_.empty(); }

    template <class T>
    void get(T& value) {
        static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
        if (bytes_.size() < sizeof value) {
            good_ = false;
            bytes_ = {};
            return;
        }
        std::memcpy(&value, bytes_.data(), sizeof value);
        bytes_.remove_prefix(sizeof value);
    }
    void get(Duration& duration) {
        std::int64_t count = 0;
        get(count);
        duration = Duration(count);
    }
    /// A number of elements; each takes at least one byte, so that no length makes us allocate
    /// more than there is.
    std::size_t get_size() {
        std::uint32_t size = 0;
        get(size);
        if (size > bytes_.size()) {
            good_ = false;
            return 0;
        }
        return size;
    }
    void get(std::string& text) {
        const std::size_t size = get_size();
        text.assign(bytes_.substr(0, size));
        bytes_.remove_prefix(size);
    }
    void get(std::vector<std::string>& texts) {
        texts.resize(get_size());
        for (std::string& text : texts) {
            get(text);
        }
    }
    void get(std::vector<std::uint32_t>& numbers) {
        numbers.resize(get_size());
        for (std::uint32_t& number : numbers) {
            get(number);
        }
    }

  private:
    std::string_view bytes_;
    bool good_ = true;
};

void put_value(Writer& writer, const Value& value) {
    if (const bool* truth = value.as_bool()) {
        writer.put(ValueKind::Bool);
        writer.put(*truth);
    } else if (const std::int64_t* whole = value.as_int()) {
        writer.put(ValueKind::Int);
        writer.put(*whole);
    } else if (const double* real = value.as_real()) {
        writer.put(ValueKind::Real);
        writer.put(*real);
    } else if (const std::string* text = value.as_text()) {
        writer.put(ValueKind::Text);
        writer.put(*text);
    } else {
        // Lists and maps never come out of a line of text.
        writer.put(ValueKind::Null);
    }
}

template <class T>
T get_one(Reader& reader) {
    T value{};
    reader.get(value);
    return value;
}

Value get_value(Reader& reader) {
    switch (get_one<ValueKind>(reader)) {
        case ValueKind::Bool:
            return get_one<std::uint8_t>(reader) != 0;
        case ValueKind::Int:
            return get_one<std::int64_t>(reader);
        case ValueKind::Real:
            return get_one<double>(reader);
        case ValueKind::Text:
            return get_one<std::string>(reader);
        case ValueKind::Null:
            break;
    }
    return Value{};
}

void get_key(Reader& reader, MemberKey& key) {
    reader.get(key.trial.value);
    reader.get(key.attempt.epoch);
    reader.get(key.attempt.number);
    reader.get(key.member.value);
}

void get_plan(Reader& reader, LaunchPlan& plan) {
    get_key(reader, plan.key);
    reader.get(plan.argv);
    reader.get(plan.function);
    plan.env.resize(reader.get_size());
    for (EnvironmentVariable& variable : plan.env) {
        reader.get(variable.name);
        reader.get(variable.value);
    }
    reader.get(plan.workdir);
    plan.files.resize(reader.get_size());
    for (FileToWrite& file : plan.files) {
        reader.get(file.path);
        reader.get(file.content);
    }
    reader.get(plan.remove_at_end);
    reader.get(plan.trial_dir);
    plan.make_trial_dir = get_one<std::uint8_t>(reader) != 0;
    reader.get(plan.output);
    reader.get(plan.output_path);
    reader.get(plan.processing_units);
    reader.get(plan.memory_limit_bytes);
    reader.get(plan.grace);
    plan.metrics.resize(reader.get_size());
    for (MetricPattern& metric : plan.metrics) {
        reader.get(metric.from);
        reader.get(metric.path);
        reader.get(metric.pattern);
    }
    reader.get(plan.checkpoints.directory);
    reader.get(plan.checkpoints.kept);
}

void get_reports(Reader& reader, KeeperReports& frame) {
    frame.reports.resize(reader.get_size());
    for (std::vector<ValueMember>& report : frame.reports) {
        report.resize(reader.get_size());
        for (ValueMember& member : report) {
            reader.get(member.key);
            member.value = get_value(reader);
        }
    }
}

std::optional<ToKeeper> read_to_keeper(Reader& reader) {
    switch (get_one<Kind>(reader)) {
        case Kind::Environment:
            return UseEnvironment{get_one<std::vector<std::string>>(reader)};
        case Kind::Launch: {
            LaunchMember frame;
            get_plan(reader, frame.plan);
            return frame;
        }
        case Kind::End:
            return EndNow{get_one<std::uint8_t>(reader) != 0};
        case Kind::Bind:
            return BindNow{get_one<std::vector<std::uint32_t>>(reader)};
        case Kind::Signal:
            return SignalNow{get_one<std::int32_t>(reader)};
        case Kind::Started:
        case Kind::Reports:
        case Kind::Remark:
        case Kind::Ended:
            break;
    }
    return std::nullopt;
}

std::optional<FromKeeper> read_from_keeper(Reader& reader) {
    switch (get_one<Kind>(reader)) {
        case Kind::Started: {
            KeeperStarted frame;
            reader.get(frame.pid);
            reader.get(frame.binding_problem);
            return frame;
        }
        case Kind::Reports: {
            KeeperReports frame;
            get_reports(reader, frame);
            return frame;
        }
        case Kind::Remark:
            return KeeperRemark{get_one<std::string>(reader)};
        case Kind::Ended: {
            KeeperEnded frame;
            reader.get(frame.outcome.cause);
            reader.get(frame.outcome.code);
            reader.get(frame.outcome.detail);
            reader.get(frame.usage.wall);
            reader.get(frame.usage.cpu);
            reader.get(frame.usage.max_rss_bytes);
            reader.get(frame.last_lines);
            return frame;
        }
        case Kind::Environment:
        case Kind::Launch:
        case Kind::End:
        case Kind::Bind:
        case Kind::Signal:
            break;
    }
    return std::nullopt;
}

}  // namespace

void append_frame(const UseEnvironment& frame, std::string& out) {
    Writer(Kind::Environment, out).put(frame.entries);
}

void append_frame(const LaunchPlan& plan, std::string& out) {
    // A field more does not compile here: then get_plan() has to know it, too. Of checkpoints the
    // keeper needs to know what is none.
    const auto& [key, argv, function, env, workdir, files, remove_at_end, trial_dir, make_trial_dir, output, output_path, processing_units, memory_limit_bytes, grace, metrics, checkpoints] =
        plan;
    Writer writer(Kind::Launch, out);
    writer.put(key.trial.value);
    writer.put(key.attempt.epoch);
    writer.put(key.attempt.number);
    writer.put(key.member.value);
    writer.put(argv);
    writer.put(function);
    writer.put_size(env.size());
    for (const EnvironmentVariable& variable : env) {
        writer.put(variable.name);
        writer.put(variable.value);
    }
    writer.put(workdir);
    writer.put_size(files.size());
    for (const FileToWrite& file : files) {
        writer.put(file.path);
        writer.put(file.content);
    }
    writer.put(remove_at_end);
    writer.put(trial_dir);
    writer.put(make_trial_dir);
    writer.put(output);
    writer.put(output_path);
    writer.put(processing_units);
    writer.put(memory_limit_bytes);
    writer.put(grace);
    writer.put_size(metrics.size());
    for (const MetricPattern& metric : metrics) {
        writer.put(metric.from);
        writer.put(metric.path);
        writer.put(metric.pattern);
    }
    writer.put(checkpoints.directory);
    writer.put(checkpoints.kept);
}

void append_frame(const EndNow& frame, std::string& out) {
    Writer(Kind::End, out).put(frame.kill);
}

void append_frame(const BindNow& frame, std::string& out) {
    Writer(Kind::Bind, out).put(frame.processing_units);
}

void append_frame(const SignalNow& frame, std::string& out) {
    Writer(Kind::Signal, out).put(frame.number);
}

void append_frame(const KeeperStarted& frame, std::string& out) {
    Writer writer(Kind::Started, out);
    writer.put(frame.pid);
    writer.put(frame.binding_problem);
}

void append_frame(const KeeperReports& frame, std::string& out) {
    Writer writer(Kind::Reports, out);
    writer.put_size(frame.reports.size());
    for (const std::vector<ValueMember>& report : frame.reports) {
        writer.put_size(report.size());
        for (const ValueMember& member : report) {
            writer.put(member.key);
            put_value(writer, member.value);
        }
    }
}

void append_frame(const KeeperRemark& frame, std::string& out) {
    Writer(Kind::Remark, out).put(frame.text);
}

void append_frame(const KeeperEnded& frame, std::string& out) {
    Writer writer(Kind::Ended, out);
    writer.put(frame.outcome.cause);
    writer.put(frame.outcome.code);
    writer.put(frame.outcome.detail);
    writer.put(frame.usage.wall);
    writer.put(frame.usage.cpu);
    writer.put(frame.usage.max_rss_bytes);
    writer.put(frame.last_lines);
}

std::optional<std::string_view> FrameBuffer::next_body() {
    std::uint32_t length = 0;
    const std::size_t left = bytes_.size() - used_;
    if (broken_ || left < sizeof length) {
        drop_used();
        return std::nullopt;
    }
    std::memcpy(&length, bytes_.data() + used_, sizeof length);
    if (left - sizeof length < length) {
        drop_used();
        return std::nullopt;
    }
    const std::string_view body(bytes_.data() + used_ + sizeof length, length);
    used_ += sizeof length + length;
    return body;
}

void FrameBuffer::drop_used() {
    bytes_.erase(0, used_);
    used_ = 0;
}

std::optional<ToKeeper> FrameBuffer::next_to_keeper() {
    const std::optional<std::string_view> body = next_body();
    if (!body) {
        return std::nullopt;
    }
    Reader reader(*body);
    std::optional<ToKeeper> frame = read_to_keeper(reader);
    broken_ = !frame || !reader.done();
    return broken_ ? std::nullopt : std::move(frame);
}

std::optional<FromKeeper> FrameBuffer::next_from_keeper() {
    const std::optional<std::string_view> body = next_body();
    if (!body) {
        return std::nullopt;
    }
    Reader reader(*body);
    std::optional<FromKeeper> frame = read_from_keeper(reader);
    broken_ = !frame || !reader.done();
    return broken_ ? std::nullopt : std::move(frame);
}

}  // namespace muster
