// SPDX-License-Identifier: Apache-2.0

#include "spec/keys.hpp"

#include <algorithm>
#include <array>

namespace muster {

namespace {

constexpr bool kLater = true;

constexpr std::array<KnownKey, 78> kKeys{{
    {"name"},
    {"metric"},
    {"mode"},
    {"num_samples"},
    {"seed"},
    {"max_concurrent_trials"},
    {"time_budget"},
    {"trial"},
    {"trial.command"},
    {"trial.shell"},
    {"trial.function"},
    {"trial.env"},
    {"trial.files"},
    {"trial.workdir"},
    {"trial.trial_dir"},
    {"trial.output"},
    {"trial.time_limit"},
    {"trial.report_timeout"},
    {"trial.grace"},
    {"trial.launch"},
    {"trial.mpi", kLater},
    {"trial.gpu_view", kLater},
    {"trial.metrics"},
    {"trial.metrics.from"},
    {"trial.metrics.path"},
    {"trial.metrics.pattern"},
    {"trial.keep_env"},
    {"trial.drop_env"},
    {"space"},
    {"resources"},
    {"resources.cpu"},
    {"resources.gpu"},
    {"resources.memory"},
    {"resources.when"},
    {"resources.placement_group"},
    {"placement_group"},
    {"placement_group.bundles"},
    {"placement_group.strategy"},
    {"scaling", kLater},
    {"cluster_resources"},
    {"nodes"},
    {"reserve"},
    {"reserve.cpu"},
    {"reserve.gpu"},
    {"reserve.memory"},
    {"node_choice"},
    {"starvation_bound"},
    {"search"},
    {"search.algorithm"},
    {"search.points"},
    {"search.command", kLater},
    {"schedule"},
    {"schedule.algorithm"},
    {"schedule.time_attr"},
    {"schedule.type", kLater},
    {"schedule.max_t", kLater},
    {"schedule.grace_period", kLater},
    {"schedule.reduction_factor", kLater},
    {"schedule.brackets", kLater},
    {"stop"},
    {"failures"},
    {"failures.max_failures"},
    {"failures.fail_fast"},
    {"checkpoints"},
    {"checkpoints.keep"},
    {"checkpoints.score"},
    {"checkpoints.mode"},
    {"checkpoints.budget"},
    {"checkpoints.storage"},
    {"checkpoints.path"},
    {"end"},
    {"end.warning"},
    {"end.min_slice"},
    {"end.signal"},
    {"storage"},
    {"storage.path"},
    {"storage.keep", kLater},
    {"grow", kLater},
}};

}  // namespace

const std::vector<KnownKey>& known_keys() {
    static const std::vector<KnownKey> keys(kKeys.begin(), kKeys.end());
    return keys;
}

std::vector<std::string> keys_below(std::string_view section) {
    std::vector<std::string> now;
    std::vector<std::string> later;
    const std::string prefix = section.empty() ? "" : std::string(section) + ".";
    for (const KnownKey& key : known_keys()) {
        const bool below = key.path.substr(0, prefix.size()) == prefix;
        const std::string_view name = below ? key.path.substr(prefix.size()) : std::string_view();
        if (!name.empty() && name.find('.') == std::string_view::npos) {
            (key.later ? later : now).emplace_back(name);
        }
    }
    now.insert(now.end(), later.begin(), later.end());
    return now;
}

bool is_later_key(std::string_view path) {
    const std::vector<KnownKey>& keys = known_keys();
    return std::any_of(keys.begin(), keys.end(), [&](const KnownKey& key) {
        return key.path == path && key.later;
    });
}

}  // namespace muster
