// SPDX-License-Identifier: Apache-2.0
//
// trial_context - what a function trial knows of itself and can say: the same as muster/trial.hpp,
// as an object. It can also be made in a program that is started as a command.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/config.hpp"
#include "muster/trial.hpp"

namespace muster {

/// A part of the trial's resources, on one node.
struct TrialBundle {
    std::string host;
    /// Numbers of the node's cores; empty when the trial is bound to none.
    std::vector<std::int64_t> cores;
    /// As CUDA_VISIBLE_DEVICES spells them.
    std::vector<std::string> devices;

    friend bool operator==(const TrialBundle&, const TrialBundle&) = default;
};

/// Thread: any, for report() and what asks muster; the rest does not change.
class TrialContext {
  public:
    /// Reads what muster says in this process's environment.
    TrialContext();

    /// "00042"; empty when not under muster.
    const std::string& id() const { return id_; }
    /// "1.0": the run and the number of the attempt in it.
    std::string attempt() const;
    /// This trial's directory in the experiment's storage. It may have to be made.
    std::string dir() const { return trial::dir(); }

    const Config& config() const { return config_; }

    /// The value of `key` ("augment/flip" in groups) as a T: bool, a number or std::string.
    /// Throws std::invalid_argument, naming the key, when there is none or it is no T; uncaught,
    /// that is how the trial fails.
    template <class T>
    T get(std::string_view key) const {
        if (std::optional<T> value = find<T>(key)) {
            return *std::move(value);
        }
        throw std::invalid_argument(why_not(key));
    }
    /// As get(), with what to use when there is no such key or its value is no T.
    template <class T>
    T get(std::string_view key, T fallback) const {
        return find<T>(key).value_or(std::move(fallback));
    }
    std::string get(std::string_view key, const char* fallback) const {
        return get<std::string>(key, fallback);
    }

    /// Hands the metrics over, made at `step`, the trial's own count of progress. False when that
    /// was not possible, which is said on stderr.
    template <class Step>
    std::enable_if_t<std::is_arithmetic_v<Step>, bool> report(Step step, trial::Metrics metrics) {
        return trial::report(step, std::move(metrics));
    }
    /// As above; muster counts the steps.
    bool report(const trial::Metrics& metrics) { return trial::report(metrics); }
    /// Reports and waits for what muster decides.
    template <class Step>
    std::enable_if_t<std::is_arithmetic_v<Step>, trial::Decision>
    report_and_wait(Step step, trial::Metrics metrics) {
        return trial::report_and_wait(step, std::move(metrics));
    }

    /// Whether muster has asked this trial to end. Costs one system call.
    bool should_stop() { return trial::should_stop(); }
    /// How long this run still lasts, once muster has warned that it ends.
    std::optional<std::chrono::duration<double>> time_left() { return trial::time_left(); }
    /// Whether to save a checkpoint now: the run ends, and none was saved since that was said.
    bool should_checkpoint() { return trial::should_checkpoint(); }

    /// Saves a checkpoint: hands the directory, whole as it is, over to muster and waits until it
    /// is safe. It is not where it was afterwards.
    trial::Checkpoint checkpoint(const std::string& directory) {
        return trial::checkpoint(directory);
    }
    /// As above, made at `step` in place of that of the last report.
    template <class Step>
    std::enable_if_t<std::is_arithmetic_v<Step>, trial::Checkpoint>
    checkpoint(const std::string& directory, Step step) {
        return trial::checkpoint(directory, step);
    }
    /// The checkpoint to resume from, a directory; empty when there is none: begin from nothing.
    std::string resume_dir() const { return trial::resume_dir(); }
    /// Where this trial's checkpoints lie.
    std::string checkpoint_dir() const { return trial::checkpoint_dir(); }

    /// The trial's own random seed: the same in every attempt, another in every trial.
    std::uint64_t seed() const { return seed_; }

    /// The trial's resources; the first bundle is the one that this process runs in.
    const std::vector<TrialBundle>& bundles() const { return bundles_; }
    /// The devices that this process sees, as CUDA_VISIBLE_DEVICES spells them.
    const std::vector<std::string>& devices() const { return devices_; }

  private:
    template <class T>
    std::optional<T> find(std::string_view key) const {
        for (const trial::Field& field : fields_) {
            if (field.name == key) {
                return trial::detail::convert<T>(field);
            }
        }
        return std::nullopt;
    }
    std::string why_not(std::string_view key) const;

    std::string id_;
    trial::Fields fields_;
    Config config_;
    std::uint64_t seed_ = 0;
    std::vector<TrialBundle> bundles_;
    std::vector<std::string> devices_;
};

}  // namespace muster
