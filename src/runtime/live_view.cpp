// SPDX-License-Identifier: Apache-2.0

#include "runtime/live_view.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "head/trial.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRunning = 200;
constexpr std::size_t kMostMetrics = 50;
constexpr std::size_t kLongestText = 200;

/// The metrics as JSON. A trial may report a megabyte of text; this file is written every second.
std::string shown_metrics(const TrialResult& result) {
    Value::Map shown = result.metrics;
    if (shown.size() > kMostMetrics) {
        shown.resize(kMostMetrics);
    }
    for (ValueMember& metric : shown) {
        const std::string text = to_argument(metric.value);
        if (text.size() > kLongestText) {
            metric.value = text.substr(0, kLongestText) + "…";
        }
    }
    return to_json(Value(std::move(shown)));
}

LiveTrial live_trial(const Head& head, TrialId id, TimePoint now) {
    const Trial& trial = *head.trial(id);
    LiveTrial live{
        .trial = id,
        .state = std::string(to_string(trial.state)),
        .why = head.explain(id, now),
        .config = to_text(trial.config)};
    if (trial.progress != nullptr && trial.progress->last) {
        live.step = trial.progress->last->step;
        live.metrics = shown_metrics(*trial.progress->last);
    }
    return live;
}

void add_count(LiveView& view, const char* name, std::uint64_t count) {
    if (count > 0) {
        view.counts.emplace_back(name, count);
    }
}

Json json_of(const LiveTrial& trial) {
    Json json{
        {"trial", trial.trial.value},
        {"state", trial.state},
        {"why", trial.why},
        {"config", trial.config},
        {"step", trial.step}};
    if (!trial.metrics.empty()) {
        json["metrics"] = Json::parse(trial.metrics);
    }
    return json;
}

Json json_of(const std::vector<LiveTrial>& trials) {
    Json list = Json::array();
    for (const LiveTrial& trial : trials) {
        list.push_back(json_of(trial));
    }
    return list;
}

LiveTrial trial_of(const Json& json) {
    LiveTrial trial{
        .trial = TrialId{json.at("trial").get<std::uint32_t>()},
        .state = json.at("state").get<std::string>(),
        .why = json.at("why").get<std::string>(),
        .config = json.at("config").get<std::string>(),
        .step = json.at("step").get<double>()};
    if (json.contains("metrics")) {
        trial.metrics = json.at("metrics").dump();
    }
    return trial;
}

std::vector<LiveTrial> trials_of(const Json& json) {
    std::vector<LiveTrial> trials;
    for (const Json& entry : json) {
        trials.push_back(trial_of(entry));
    }
    return trials;
}

LiveView view_of(const Json& json) {
    LiveView view{
        .experiment = json.at("experiment").get<std::string>(),
        .host = json.at("host").get<std::string>(),
        .pid = json.at("pid").get<std::int64_t>(),
        .epoch = json.at("epoch").get<std::uint32_t>(),
        .written = json.at("written").get<std::int64_t>(),
        .experiment_seconds = json.at("experiment_seconds").get<double>(),
        .ended = json.at("ended").get<std::string>()};
    for (const auto& count : json.at("counts").items()) {
        view.counts.emplace_back(count.key(), count.value().get<std::uint64_t>());
    }
    if (!json.at("total").is_null()) {
        view.total = json.at("total").get<std::uint64_t>();
    }
    view.in_use = json.at("in_use").get<std::string>();
    view.capacity = json.at("capacity").get<std::string>();
    view.nodes = json.value("nodes", std::uint32_t{1});
    view.nodes_set_aside = json.value("nodes_set_aside", std::uint32_t{0});
    if (!json.at("best").is_null()) {
        view.best = trial_of(json.at("best"));
    }
    view.running = trials_of(json.at("running"));
    view.running_left_out = json.at("running_left_out").get<std::uint64_t>();
    view.waiting = trials_of(json.at("waiting"));
    return view;
}

}  // namespace

LiveView make_live_view(const Head& head, const std::string& experiment, TimePoint now) {
    const HeadSummary summary = head.summary();
    LiveView view{
        .experiment = experiment,
        .epoch = head.epoch(),
        .experiment_seconds = seconds(now.since_start),
        .total = summary.total,
        .in_use = to_string(summary.in_use),
        .capacity = to_string(summary.capacity),
        .nodes = summary.nodes,
        .nodes_set_aside = summary.nodes_set_aside};
    add_count(view, "running", summary.running);
    add_count(view, "stopping", summary.stopping);
    add_count(view, "paused", summary.paused);
    add_count(view, "waiting", summary.waiting());
    add_count(view, "completed", summary.completed);
    add_count(view, "stopped", summary.stopped);
    add_count(view, "failed", summary.failed);
    add_count(view, "cancelled", summary.cancelled);
    if (summary.best) {
        view.best = live_trial(head, *summary.best, now);
        const TrialResult& result = *head.trial(*summary.best)->progress->best;
        view.best->step = result.step;
        view.best->metrics = shown_metrics(result);
    }
    const std::vector<TrialId> active = head.active_trials();
    for (std::size_t index = 0; index < std::min(active.size(), kMostRunning); ++index) {
        view.running.push_back(live_trial(head, active[index], now));
    }
    view.running_left_out = active.size() - view.running.size();
    for (const TrialId id : head.first_waiting()) {
        view.waiting.push_back(live_trial(head, id, now));
    }
    return view;
}

std::string to_json(const LiveView& view) {
    Json counts = Json::object();
    for (const auto& count : view.counts) {
        counts[count.first] = count.second;
    }
    const Json json{
        {"experiment", view.experiment},
        {"host", view.host},
        {"pid", view.pid},
        {"epoch", view.epoch},
        {"written", view.written},
        {"experiment_seconds", view.experiment_seconds},
        {"ended", view.ended},
        {"counts", counts},
        {"total", view.total ? Json(*view.total) : Json()},
        {"in_use", view.in_use},
        {"capacity", view.capacity},
        {"nodes", view.nodes},
        {"nodes_set_aside", view.nodes_set_aside},
        {"best", view.best ? json_of(*view.best) : Json()},
        {"running", json_of(view.running)},
        {"running_left_out", view.running_left_out},
        {"waiting", json_of(view.waiting)}};
    // Names and outputs of trials may hold any bytes: what is not UTF-8 is replaced.
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<LiveView> live_view_from_json(const std::string& json) {
    try {
        return view_of(Json::parse(json));
    } catch (const std::exception& problem) {
        return Error{ErrorCode::Corrupt, problem.what()};
    }
}

Result<LiveView> read_live_view(const std::string& experiment_dir) {
    const std::string path = experiment_dir + "/live.json";
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return Error{ErrorCode::NotFound, path + " is not there: the experiment has never run"};
    }
    const std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Result<LiveView> view = live_view_from_json(json);
    if (!view) {
        return Error{ErrorCode::Corrupt, path + ": " + view.error().message};
    }
    return view;
}

}  // namespace muster
