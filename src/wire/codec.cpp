// SPDX-License-Identifier: Apache-2.0
//
// codec - one fields() for each struct that crosses the wire, used in both directions, so that
// reading and writing can't drift apart.

#include "wire/codec.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "muster/config.hpp"
#include "muster/value.hpp"

#include "wire/coders.hpp"

namespace muster {
// A namespace of its own and not an unnamed one, so that field() is found by its Coder.
namespace wire {

/// Raised when the form of a frame changes within one version.
constexpr std::uint32_t kForm = 3;

/// The last enumerator of each enum on the wire: anything above is corrupt.
template <class Enum>
constexpr Enum kLast = nullptr;
template <>
constexpr EndCause kLast<EndCause> = EndCause::Lost;
template <>
constexpr StopKind kLast<StopKind> = StopKind::Kill;
template <>
constexpr Mode kLast<Mode> = Mode::Max;
template <>
constexpr RankRole kLast<RankRole> = RankRole::Dismissed;
template <>
constexpr DeviceKind kLast<DeviceKind> = DeviceKind::Logical;
template <>
constexpr TrialDir kLast<TrialDir> = TrialDir::Never;
template <>
constexpr OutputMode kLast<OutputMode> = OutputMode::Discard;
template <>
constexpr MetricSource kLast<MetricSource> = MetricSource::File;
template <>
constexpr CheckpointStorage kLast<CheckpointStorage> = CheckpointStorage::Node;

/// field() serves both directions and so takes what may be changed; a Saver only reads.
template <class Item>
Item& writable(const Item& item) {
    return const_cast<Item&>(item);  // NOLINT
}

template <class Coder, class... Fields>
void fields(Coder& coder, Fields&... values) {
    (field(coder, values), ...);
}

// --- what structs are made of ---

template <class Coder, class Number>
requires std::is_arithmetic_v<Number>
void field(Coder& coder, Number& value) {
    coder.number(value);
}

template <class Coder>
void field(Coder& coder, bool& value) {
    std::uint8_t byte = value ? 1 : 0;
    coder.number(byte);
    value = byte != 0;
}

template <class Coder, class Enum>
requires std::is_enum_v<Enum>
void field(Coder& coder, Enum& value) {
    auto byte = static_cast<std::uint8_t>(value);
    coder.number(byte);
    if (byte > static_cast<std::uint8_t>(kLast<Enum>)) {
        throw CorruptFrame("a choice is out of its range");
    }
    value = static_cast<Enum>(byte);
}

template <class Coder>
void field(Coder& coder, std::string& value) {
    coder.text(value);
}

template <class Coder>
void field(Coder& coder, Duration& value) {
    std::int64_t nanoseconds = value.count();
    coder.number(nanoseconds);
    value = Duration{nanoseconds};
}

template <class Coder>
void field(Coder& coder, Amount& value) {
    std::int64_t count = value.ten_thousandths();
    coder.number(count);
    value = Amount::ten_thousandths(count);
}

template <class Coder, class Item>
void field(Coder& coder, std::vector<Item>& items) {
    const std::size_t count = coder.count(items.size());
    if constexpr (Coder::kLoads) {
        // Grown as items really come, not by what the count promises.
        items.clear();
        for (std::size_t index = 0; index < count; ++index) {
            field(coder, items.emplace_back());
        }
    } else {
        for (Item& item : items) {
            field(coder, item);
        }
    }
}

template <class Coder, class Item>
void field(Coder& coder, std::optional<Item>& item) {
    bool present = item.has_value();
    field(coder, present);
    if (Coder::kLoads && present) {
        item.emplace();
    }
    if (present) {
        field(coder, *item);
    }
}

/// Setup comes once a node: its copy is not worth a second form of field().
template <class Coder, class Item>
void field(Coder& coder, Boxed<Item>& boxed) {
    Item item = *boxed;
    field(coder, item);
    boxed = Boxed<Item>(std::move(item));
}

template <std::size_t kIndex = 0, class... Items>
void emplace_alternative(std::variant<Items...>& item, std::size_t index) {
    if constexpr (kIndex < sizeof...(Items)) {
        if (index == kIndex) {
            item.template emplace<kIndex>();
        } else {
            emplace_alternative<kIndex + 1>(item, index);
        }
    } else {
        throw CorruptFrame("a kind is out of its range");
    }
}

template <class Coder, class... Items>
void field(Coder& coder, std::variant<Items...>& item) {
    auto index = static_cast<std::uint8_t>(item.index());
    coder.number(index);
    if constexpr (Coder::kLoads) {
        emplace_alternative(item, index);
    }
    std::visit([&](auto& alternative) { field(coder, alternative); }, item);
}

// --- values and configs ---

using ValueState =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Value::List, Value::Map>;

template <class Coder>
void field(Coder& /*coder*/, std::monostate& /*value*/) {}

template <class Coder>
void field(Coder& coder, ValueMember& member) {
    fields(coder, member.key, member.value);
}

inline void field(Saver& saver, Value& value) {
    const auto save = [&](std::uint8_t index, const auto& content) {
        saver.number(index);
        field(saver, writable(content));
    };
    if (const bool* truth = value.as_bool()) {
        save(1, *truth);
    } else if (const std::int64_t* whole = value.as_int()) {
        save(2, *whole);
    } else if (const double* real = value.as_real()) {
        save(3, *real);
    } else if (const std::string* text = value.as_text()) {
        save(4, *text);
    } else if (const Value::List* list = value.as_list()) {
        save(5, *list);
    } else if (const Value::Map* map = value.as_map()) {
        save(6, *map);
    } else {
        save(0, std::monostate{});
    }
}

inline void field(Loader& loader, Value& value) {
    loader.enter();
    ValueState state;
    field(loader, state);
    std::visit(
        [&](auto& content) {
            if constexpr (std::is_same_v<decltype(content), std::monostate&>) {
                value = Value();
            } else {
                value = Value(std::move(content));
            }
        },
        state
    );
    loader.leave();
}

template <class Coder>
void field(Coder& coder, Config& config) {
    bool has_schema = config.schema() != nullptr;
    field(coder, has_schema);
    if (!has_schema) {
        return;
    }
    if constexpr (Coder::kLoads) {
        auto schema = std::make_shared<ConfigSchema>();
        std::vector<std::optional<Value>> values;
        fields(coder, schema->keys, values);
        if (schema->keys.size() != values.size()) {
            throw CorruptFrame("a config has more keys than values, or fewer");
        }
        config = Config(std::move(schema), std::move(values));
    } else {
        fields(coder, writable(config.schema()->keys), writable(config.values()));
    }
}

// --- the structs, one line each where that is possible ---

template <class Coder>
void field(Coder& coder, TrialId& id) {
    coder.number(id.value);
}

template <class Coder>
void field(Coder& coder, NodeId& id) {
    coder.number(id.value);
}

template <class Coder>
void field(Coder& coder, MemberKey& key) {
    fields(coder, key.trial.value, key.attempt.epoch, key.attempt.number, key.member.value);
}

template <class Coder>
void field(Coder& coder, ObjectiveSpec& objective) {
    fields(coder, objective.metric, objective.mode);
}

template <class Coder>
void field(Coder& coder, EnvironmentVariable& variable) {
    fields(coder, variable.name, variable.value);
}

template <class Coder>
void field(Coder& coder, TemplateFile& file) {
    fields(coder, file.target, file.source, file.content);
}

template <class Coder>
void field(Coder& coder, MetricPattern& metric) {
    fields(coder, metric.from, metric.path, metric.pattern);
}

template <class Coder>
void field(Coder& coder, TrialSpec& trial) {
    fields(coder, trial.command, trial.shell, trial.function, trial.env, trial.files);
    fields(coder, trial.workdir, trial.workdir_is_trial_dir, trial.trial_dir, trial.output);
    fields(coder, trial.time_limit, trial.report_timeout, trial.grace, trial.metrics);
    fields(coder, trial.time_attr, trial.keep_env, trial.drop_env);
}

template <class Coder>
void field(Coder& coder, BundleView& bundle) {
    fields(coder, bundle.host, bundle.cores, bundle.devices);
}

template <class Coder>
void field(Coder& coder, NamedAmount& amount) {
    fields(coder, amount.name, amount.amount);
}

template <class Coder>
void field(Coder& coder, Core& core) {
    fields(coder, core.processing_units, core.numa_node);
}

template <class Coder>
void field(Coder& coder, Device& device) {
    fields(coder, device.label, device.kind, device.numa_node, device.memory_bytes, device.model);
}

template <class Coder>
void field(Coder& coder, NodeInventory& node) {
    fields(coder, node.name, node.cpu, node.cores, node.devices, node.memory_bytes, node.custom);
}

template <class Coder>
void field(Coder& coder, TrialResult& result) {
    fields(coder, result.step, result.metrics);
}

template <class Coder>
void field(Coder& coder, Outcome& outcome) {
    fields(coder, outcome.cause, outcome.code, outcome.detail);
}

template <class Coder>
void field(Coder& coder, Usage& usage) {
    fields(coder, usage.wall, usage.cpu, usage.max_rss_bytes);
}

// --- head to agent ---

template <class Coder>
void field(Coder& coder, Setup& setup) {
    fields(coder, setup.epoch, setup.experiment, setup.experiment_dir);
    fields(coder, setup.trial, setup.objective, setup.checkpoint_storage, setup.checkpoint_path);
    fields(coder, setup.warning_signal, setup.seed);
}

template <class Coder>
void field(Coder& coder, Start& start) {
    fields(coder, start.key, start.config, start.cores, start.devices, start.cpu, start.gpu);
    fields(coder, start.memory_limit_bytes, start.bundles, start.last_step);
    fields(coder, start.kept_checkpoints, start.resume_from, start.fetch_from);
    fields(coder, start.next_checkpoint);
}

template <class Coder>
void field(Coder& coder, Stop& stop) {
    fields(coder, stop.key, stop.kind);
}

template <class Coder>
void field(Coder& coder, SetCores& set) {
    fields(coder, set.key, set.cores);
}

template <class Coder>
void field(Coder& coder, Alive& alive) {
    fields(coder, alive.heartbeat);
}

template <class Coder>
void field(Coder& coder, Dismiss& dismiss) {
    fields(coder, dismiss.orderly);
}

template <class Coder>
void field(Coder& coder, CheckpointDurable& durable) {
    fields(coder, durable.key, durable.number);
}

template <class Coder>
void field(Coder& coder, DeleteCheckpoint& deleted) {
    fields(coder, deleted.trial, deleted.number);
}

template <class Coder>
void field(Coder& coder, Warn& warn) {
    fields(coder, warn.key, warn.left);
}

template <class Coder>
void field(Coder& coder, FromPeer& word) {
    fields(coder, word.from, word.content);
}

template <class Coder>
void field(Coder& coder, PeerUnreachable& unreachable) {
    fields(coder, unreachable.node);
}

// --- agent to head ---

template <class Coder>
void field(Coder& coder, Hello& hello) {
    fields(coder, hello.incarnation, hello.inventory);
}

template <class Coder>
void field(Coder& coder, Started& started) {
    fields(coder, started.key, started.pid);
}

template <class Coder>
void field(Coder& coder, Reported& reported) {
    fields(coder, reported.key, reported.result, reported.coalesced);
}

template <class Coder>
void field(Coder& coder, Ended& ended) {
    fields(coder, ended.key, ended.outcome, ended.usage, ended.last_lines);
}

template <class Coder>
void field(Coder& coder, Remark& remark) {
    fields(coder, remark.key, remark.text);
}

template <class Coder>
void field(Coder& coder, Heartbeat& heartbeat) {
    fields(coder, heartbeat.number);
}

template <class Coder>
void field(Coder& coder, Farewell& farewell) {
    fields(coder, farewell.reason);
}

template <class Coder>
void field(Coder& coder, CheckpointSaved& saved) {
    fields(coder, saved.key, saved.number, saved.step, saved.bytes);
}

template <class Coder>
void field(Coder& coder, CheckpointGone& gone) {
    fields(coder, gone.key, gone.number, gone.why);
}

template <class Coder>
void field(Coder& coder, ToPeer& word) {
    fields(coder, word.to, word.content);
}

// --- the roll call ---

template <class Coder>
void field(Coder& coder, Enrol& enrol) {
    fields(coder, enrol.host, enrol.boot_id, enrol.pid, enrol.inventory, enrol.problem);
}

template <class Coder>
void field(Coder& coder, Enlisted& enlisted) {
    fields(coder, enlisted.role, enlisted.inventory, enlisted.environment, enlisted.token_path);
    fields(
        coder,
        enlisted.token,
        enlisted.token_patience,
        enlisted.heartbeat,
        enlisted.lease,
        enlisted.rejoin
    );
    fields(coder, enlisted.again, enlisted.again_patience, enlisted.orderly);
}

template <class Coder>
void field(Coder& coder, AgentReady& ready) {
    fields(coder, ready.problem);
}

// --- frames ---

/// FNV-1a over what both ends must agree on.
constexpr std::uint32_t stamp(std::string_view direction) {
    std::uint32_t hash = 2'166'136'261U ^ kForm;
    for (const std::string_view part : {std::string_view(MUSTER_VERSION), direction}) {
        for (const char byte : part) {
            hash = (hash ^ static_cast<unsigned char>(byte)) * 16'777'619U;
        }
    }
    return hash;
}

template <class Message>
constexpr std::string_view kDirection = "";
template <>
constexpr std::string_view kDirection<ToAgent> = "to agent";
template <>
constexpr std::string_view kDirection<FromAgent> = "from agent";
template <>
constexpr std::string_view kDirection<Enrol> = "enrol";
template <>
constexpr std::string_view kDirection<Enlisted> = "enlisted";
template <>
constexpr std::string_view kDirection<AgentReady> = "agent ready";

template <class Message>
constexpr std::uint32_t kStamp = stamp(kDirection<Message>);

template <class Message>
std::string encode_frame(std::span<const Message> messages) {
    std::string bytes;
    Saver saver(bytes);
    saver.number(kStamp<Message>);
    saver.count(messages.size());
    for (const Message& message : messages) {
        field(saver, writable(message));
    }
    return bytes;
}

template <class Message>
Result<std::vector<Message>> decode_frame(std::string_view bytes) {
    try {
        Loader loader(bytes);
        std::uint32_t found = 0;
        loader.number(found);
        if (found != kStamp<Message>) {
            return Error{ErrorCode::Corrupt, "a frame of another version or direction"};
        }
        std::vector<Message> messages;
        field(loader, messages);
        if (loader.left() > 0) {
            return Error{ErrorCode::Corrupt, "a frame with bytes behind its end"};
        }
        return messages;
    } catch (const std::exception& problem) {
        return Error{ErrorCode::Corrupt, std::string("a damaged frame: ") + problem.what()};
    }
}

/// The only message of a frame.
template <class Message>
Result<Message> decode_one(std::string_view bytes) {
    Result<std::vector<Message>> messages = decode_frame<Message>(bytes);
    if (!messages.ok()) {
        return messages.error();
    }
    if (messages->size() != 1) {
        return Error{ErrorCode::Corrupt, "a frame of the roll call without its one word"};
    }
    return std::move(messages->front());
}

}  // namespace wire

std::string encode(const ToAgent& message) {
    return wire::encode_frame(std::span<const ToAgent>(&message, 1));
}

std::string encode(const FromAgent& message) {
    return wire::encode_frame(std::span<const FromAgent>(&message, 1));
}

std::string encode(std::span<const ToAgent> messages) {
    return wire::encode_frame(messages);
}

std::string encode(std::span<const FromAgent> messages) {
    return wire::encode_frame(messages);
}

Result<std::vector<ToAgent>> decode_to_agent(std::string_view bytes) {
    return wire::decode_frame<ToAgent>(bytes);
}

Result<std::vector<FromAgent>> decode_from_agent(std::string_view bytes) {
    return wire::decode_frame<FromAgent>(bytes);
}

std::string encode(const Enrol& enrol) {
    return wire::encode_frame(std::span<const Enrol>(&enrol, 1));
}

std::string encode(const Enlisted& enlisted) {
    return wire::encode_frame(std::span<const Enlisted>(&enlisted, 1));
}

std::string encode(const AgentReady& ready) {
    return wire::encode_frame(std::span<const AgentReady>(&ready, 1));
}

Result<Enrol> decode_enrol(std::string_view bytes) {
    return wire::decode_one<Enrol>(bytes);
}

Result<Enlisted> decode_enlisted(std::string_view bytes) {
    return wire::decode_one<Enlisted>(bytes);
}

Result<AgentReady> decode_agent_ready(std::string_view bytes) {
    return wire::decode_one<AgentReady>(bytes);
}

}  // namespace muster
