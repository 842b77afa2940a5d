// SPDX-License-Identifier: Apache-2.0
//
// trial - for C++ programs that are trials: report metrics, read the config, save and resume
// checkpoints, know when to stop.
//
//     const double lr = muster::trial::get("lr", 0.1);
//     for (int epoch = 1; epoch <= 20 && !muster::trial::should_stop(); ++epoch) {
//         muster::trial::report(epoch, {{"loss", train(lr)}});
//     }
//
// Header only, standard library and POSIX only. Not under muster everything works and does nothing,
// so that the same program also runs alone. Nothing here throws, raises SIGPIPE or waits without
// end: if muster is gone, report() says so once on stderr and is false.
//
// Thread: the functions may be called from any thread, and in children after fork().

#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <unistd.h>

#include "muster/trial_config.hpp"
#include "muster/trial_files.hpp"
#include "muster/trial_metric.hpp"
#include "muster/trial_reporter.hpp"

namespace muster::trial {

/// Whether this process runs under muster.
inline bool active() {
    return !detail::environment("MUSTER_SOCKET").empty();
}

/// "00042"; empty when not under muster.
inline std::string id() {
    return detail::environment("MUSTER_TRIAL_ID");
}

/// This trial's directory in the experiment's storage; empty when not under muster.
inline std::string dir() {
    return detail::environment("MUSTER_TRIAL_DIR");
}

/// The checkpoint to resume from, a directory; empty when there is none: begin from nothing. Read
/// it at the start, for it is removed once there are enough newer ones.
inline std::string resume_dir() {
    return detail::environment("MUSTER_CHECKPOINT");
}

/// Where this trial's checkpoints lie; empty when not under muster. What is written to a directory
/// of its own in here need not be copied for checkpoint(). It may have to be made.
inline std::string checkpoint_dir() {
    return detail::environment("MUSTER_CHECKPOINT_DIR");
}

/// Reports at `step`, the trial's own count of progress.
template <class Step>
std::enable_if_t<std::is_arithmetic_v<Step>, bool> report(Step step, Metrics metrics) {
    metrics.insert(metrics.begin(), Metric("step", step));
    return detail::reporter().report(metrics);
}

/// Reports; muster counts the steps.
inline bool report(const Metrics& metrics) {
    return detail::reporter().report(metrics);
}

/// Reports and waits for what muster decides.
template <class Step>
std::enable_if_t<std::is_arithmetic_v<Step>, Decision> report_and_wait(Step step, Metrics metrics) {
    metrics.insert(metrics.begin(), Metric("step", step));
    return detail::reporter().report_and_wait(metrics);
}

/// Whether muster has asked this trial to end. Costs one system call.
inline bool should_stop() {
    return detail::reporter().should_stop();
}

/// How long this run still lasts, once muster has warned that it ends (see `end.warning` in the
/// spec); nothing before. Never negative. Costs one system call.
inline std::optional<std::chrono::duration<double>> time_left() {
    const auto end = detail::reporter().end();
    if (!end) {
        return std::nullopt;
    }
    const std::chrono::duration<double> left = *end - std::chrono::steady_clock::now();
    return std::max(left, std::chrono::duration<double>::zero());
}

/// Whether to save a checkpoint now: muster has warned that the run ends, and none was saved since.
/// Costs one system call.
inline bool should_checkpoint() {
    return detail::reporter().should_checkpoint();
}

/// What became of a checkpoint.
struct Checkpoint {
    /// Whether it is durable and will be resumed from when the trial runs again.
    bool safe = false;
    /// Where it lies. When it is not safe: where the directory was, and is again.
    std::string path;
    /// Why it is not safe; also said on stderr. Empty when not under muster.
    std::string problem;

    explicit operator bool() const { return safe; }
};

namespace detail {

/// ".new-1.7-0-4711-3": known to nobody, and removed if this process does not get any further.
inline std::string fresh_name() {
    static std::atomic<unsigned> count{0};
    return ".new-" + environment("MUSTER_ATTEMPT") + "-" + environment("MUSTER_MEMBER") + "-" +
           std::to_string(::getpid()) + "-" + std::to_string(count++);
}

/// As checkpoint(), by way of `reporter`; problems are left to the caller to say.
inline Checkpoint
save_checkpoint(Reporter& reporter, const std::string& directory, std::optional<double> step) {
    std::error_code failed;
    const std::string from = std::filesystem::canonical(directory, failed).string();
    if (failed || !std::filesystem::is_directory(from, failed)) {
        const std::error_code why =
            failed ? failed : std::error_code(ENOTDIR, std::generic_category());
        return {false, directory, file_problem("save the directory", directory, why)};
    }
    const std::string kept_in = checkpoint_dir();
    if (!active()) {
        return {false, from, ""};
    }
    if (kept_in.empty()) {
        return {false, from, "this run keeps no checkpoints (MUSTER_CHECKPOINT_DIR is not set)"};
    }
    std::string problem = make_private_directories(kept_in);
    if (!problem.empty()) {
        return {false, from, std::move(problem)};
    }
    const std::string name = fresh_name();
    MovedDirectory moved(from, kept_in + "/" + name);
    problem = moved.move();
    if (problem.empty()) {
        problem = sync_tree(kept_in + "/" + name);
    }
    if (!problem.empty()) {
        return {false, from, std::move(problem)};
    }
    const std::optional<std::string> kept = reporter.keep(name, step);
    if (!kept) {
        problem = reporter.last_problem();
        return {false, from, problem.empty() ? "muster has closed the connection" : problem};
    }
    moved.kept();
    return {true, kept_in + "/" + *kept, ""};
}

inline Checkpoint checkpoint(const std::string& directory, std::optional<double> step) {
    // On a connection of its own: other threads' reports need not wait for the disk. What was
    // reported before goes first, since the step may be taken from there.
    reporter().settle();
    Reporter saver;
    Checkpoint saved = save_checkpoint(saver, directory, step);
    if (saved.safe) {
        reporter().checkpoint_saved();
    } else if (!saved.problem.empty() && saver.last_problem().empty()) {
        reporter().complain(saved.problem);
    }
    return saved;
}

}  // namespace detail

/// Saves a checkpoint: hands the directory, whole as it is, over to muster and waits until it is
/// safe. It is moved (copied, if it lies on another file system) to checkpoint_dir(), so it is not
/// where it was afterwards. Its step is that of the last report.
///
/// Not under muster the directory stays as it is: not safe, no problem.
inline Checkpoint checkpoint(const std::string& directory) {
    return detail::checkpoint(directory, std::nullopt);
}

/// As above, made at `step`.
template <class Step>
std::enable_if_t<std::is_arithmetic_v<Step>, Checkpoint>
checkpoint(const std::string& directory, Step step) {
    return detail::checkpoint(directory, static_cast<double>(step));
}

}  // namespace muster::trial
