// SPDX-License-Identifier: Apache-2.0
//
// process_harness - runs members for real and waits, with a deadline, for what comes of them.

#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include "process/environment.hpp"
#include "process/processes.hpp"

namespace muster::test {

inline constexpr std::chrono::seconds kPatience{20};

/// A directory that goes with its owner.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = "/tmp/muster-process-test-XXXXXX";
        if (::mkdtemp(name.data()) != nullptr) {
            path_ = name;
        }
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

inline std::string read_all(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Whether `condition` comes to hold in time.
inline bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        ::poll(nullptr, 0, 2);
    }
    return true;
}

/// Whether the process runs (one that waits to be reaped does not).
inline bool is_running(pid_t pid) {
    const std::string stat = read_all("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = stat.rfind(')');
    return name_end != std::string::npos &&
           stat.substr(name_end, 4).find_first_of("ZX") == std::string::npos;
}

inline pid_t pid_in(const std::string& path) {
    return static_cast<pid_t>(std::strtol(read_all(path).c_str(), nullptr, 10));
}

/// Everything that came of one member.
struct Story {
    std::optional<MemberStarted> started;
    std::optional<MemberEnded> ended;
    std::vector<std::vector<ValueMember>> reports;
    std::vector<std::string> remarks;
};

class ProcessHarness {
  public:
    /// Both as for Spawner::start.
    explicit ProcessHarness(
        const std::vector<std::uint32_t>& processing_units = {},
        const TrialFunctions& functions = {}
    ) {
        Result<Spawner> spawner = Spawner::start("", processing_units, functions);
        EXPECT_TRUE(spawner.ok());
        spawner_pid_ = spawner->pid();
        processes_.emplace(
            std::move(spawner).value(), trial_base_environment(current_environment(), {})
        );
    }

    Processes& processes() { return *processes_; }
    pid_t spawner_pid() const { return spawner_pid_; }
    const TemporaryDirectory& directory() const { return directory_; }

    /// A plan of its own for `argv`, in this harness's directory.
    LaunchPlan plan(std::vector<std::string> argv) {
        LaunchPlan plan;
        plan.key.trial.value = next_;
        plan.key.attempt = {1, next_++};
        plan.argv = std::move(argv);
        plan.workdir = directory_.path();
        plan.trial_dir = directory_ / to_string(plan.key.trial);
        plan.output_path = plan.trial_dir + "/output";
        plan.grace = std::chrono::seconds{10};
        return plan;
    }
    LaunchPlan function(const std::string& name) {
        LaunchPlan plan = this->plan({});
        plan.function = name;
        return plan;
    }
    LaunchPlan shell(const std::string& script) { return plan({"/bin/sh", "-c", script}); }

    /// Takes in events until `condition` holds or patience ends.
    bool wait_for(const std::function<bool()>& condition) {
        const auto deadline = std::chrono::steady_clock::now() + kPatience;
        while (!condition()) {
            if (std::chrono::steady_clock::now() > deadline) {
                return false;
            }
            pollfd poll_fd{.fd = processes_->fd(), .events = POLLIN, .revents = 0};
            ::poll(&poll_fd, 1, 20);
            for (AgentEvent& event : processes_->receive()) {
                take(event);
            }
        }
        return true;
    }

    /// The story of `key` so far.
    Story& story(MemberKey key) { return stories_[key]; }

    /// The whole story of `plan`, launched now.
    Story run(const LaunchPlan& plan) {
        processes_->launch(plan);
        EXPECT_TRUE(wait_for([&] { return story(plan.key).ended.has_value(); }));
        return story(plan.key);
    }

    /// Launches and waits until it has started.
    void start(const LaunchPlan& plan) {
        processes_->launch(plan);
        EXPECT_TRUE(wait_for([&] { return story(plan.key).started.has_value(); }));
    }

    /// Waits for the end of a member that was started.
    MemberEnded ending(MemberKey key) {
        EXPECT_TRUE(wait_for([&] { return story(key).ended.has_value(); }));
        return story(key).ended.value_or(MemberEnded{});
    }

    std::string output_of(const LaunchPlan& plan) const { return read_all(plan.output_path); }

  private:
    void take(AgentEvent& event) {
        if (auto* started = std::get_if<MemberStarted>(&event)) {
            stories_[started->key].started = *started;
        } else if (auto* ended = std::get_if<MemberEnded>(&event)) {
            EXPECT_FALSE(stories_[ended->key].ended.has_value());
            stories_[ended->key].ended = *ended;
        } else if (auto* arrived = std::get_if<ReportArrived>(&event)) {
            stories_[arrived->key].reports.push_back(std::move(arrived->metrics));
        } else if (auto* refused = std::get_if<ReportRefused>(&event)) {
            stories_[refused->key].remarks.push_back(refused->text);
        }
    }

    TemporaryDirectory directory_;
    std::optional<Processes> processes_;
    pid_t spawner_pid_ = -1;
    std::uint32_t next_ = 0;
    std::map<MemberKey, Story> stories_;
};

}  // namespace muster::test
