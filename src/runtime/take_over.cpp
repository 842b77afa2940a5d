// SPDX-License-Identifier: Apache-2.0

#include "runtime/take_over.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>

#include "base/time.hpp"
#include "runtime/host.hpp"
#include "runtime/team_file.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Between two looks at what is waited for.
constexpr Duration kInterval = 500ms;
constexpr Duration kIntervalHere = 20ms;
/// A head may have answered an agent so long after its last sign of life.
constexpr Duration kAfterLastSign = 10s;
/// For processes of trials whose spawner is gone, and then for those that were killed.
constexpr Duration kPatienceHere = 5s;
constexpr Duration kPatienceAfterKill = 10s;
/// For a run that Slurm took for dead: it asks Slurm every half minute, and then stops its trials.
constexpr Duration kPatienceWithIncarnation = 10min;
/// For a spawner, which gives its trials their grace.
constexpr Duration kPatienceWithSpawner = 5min;

std::string clock_text(Duration from_now) {
    const std::time_t at =
        ::time(nullptr) + std::chrono::ceil<std::chrono::seconds>(from_now).count();
    return fmt::format("{:%H:%M:%S} UTC", fmt::gmtime(at));
}

std::string whole_seconds(Duration duration) {
    const auto left = std::max<Duration>(duration, Duration{0});
    return format_duration(std::chrono::ceil<std::chrono::seconds>(left));
}

std::string who_holds(const std::string& directory, const Holder& holder) {
    const RunIdentity& who = holder.who;
    const std::string since =
        who.since > 0 ? fmt::format(" since {:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(who.since)) : "";
    return fmt::format(
        "{} is held by another run: process {} on {}{}, last sign of life {} s ago",
        directory,
        who.pid,
        who.host.empty() ? "an unknown host" : who.host,
        since,
        holder.silent.count()
    );
}

Error refusal(const std::string& directory, const Holder& holder) {
    const bool is_here = holder.state == Holder::State::Living;
    const std::string kill = fmt::format("kill -INT {}", holder.who.pid);
    return Error{
        ErrorCode::Conflict,
        fmt::format(
            "{}; `{}` ends it so that it can be continued",
            who_holds(directory, holder),
            is_here ? kill : fmt::format("ssh {} {}", holder.who.host, kill)
        )};
}

/// Says now and then how long it still takes.
class Countdown {
  public:
    explicit Countdown(const Waiting& waiting) : waiting_(waiting) {}

    /// Waits a little, and says `first` the first time; then what `rest` makes of what is left.
    /// False when somebody wants the end.
    bool wait(Duration interval, const std::string& first, const std::string& rest) {
        const Duration now = monotonic_now();
        if (!next_) {
            waiting_.say(first);
            next_ = now + Waiting::kCountdown;
        } else if (now >= *next_) {
            waiting_.say(rest);
            next_ = now + Waiting::kCountdown;
        }
        waiting_.breathe();
        pollfd stop{waiting_.stop_fd, POLLIN, 0};
        const auto pause = std::chrono::ceil<std::chrono::milliseconds>(interval);
        return ::poll(&stop, 1, static_cast<int>(pause.count())) <= 0;
    }

  private:
    const Waiting& waiting_;
    std::optional<Duration> next_;
};

bool holds_path_below(std::string_view environment, const std::string& directory) {
    for (const char* name : {"MUSTER_TRIAL_DIR=", "MUSTER_CHECKPOINT_DIR="}) {
        const std::string wanted = name + directory + "/";
        for (std::size_t at = environment.find(wanted); at != std::string_view::npos;
             at = environment.find(wanted, at + 1)) {
            if (at == 0 || environment[at - 1] == '\0') {
                return true;
            }
        }
    }
    return false;
}

/// Waits for the old run's processes on this host.
class Remains {
  public:
    Remains(const std::string& directory, const OwnerFile& owner, const Waiting& waiting)
        : directory_(directory),
          waiting_(waiting),
          countdown_(waiting) {
        if (owner.predecessor() && is_on_this_host(owner.predecessor()->who)) {
            spawner_ = owner.predecessor()->who;
        }
    }

    Result<bool> outwait(const std::function<Status()>& keep) {
        const Duration begin = monotonic_now();
        Duration patience = kPatienceWithSpawner;
        while (true) {
            const Duration now = monotonic_now();
            const bool has_spawner = lives(spawner_.spawner, spawner_.spawner_started);
            const std::vector<pid_t> left = trial_processes(directory_);
            if (!has_spawner && left.empty()) {
                return true;
            }
            patience = has_spawner ? patience : std::min(patience, now - begin + kPatienceHere);
            if (now - begin > patience && !killed_at_) {
                kill(left);
            }
            if (killed_at_ && now - *killed_at_ > kPatienceAfterKill) {
                return Error{
                    ErrorCode::System,
                    fmt::format(
                        "process {} of the run before can't be ended: it may hang in the kernel",
                        left.empty() ? spawner_.spawner : left.front()
                    )};
            }
            if (Status kept = keep(); !kept.ok()) {
                return kept.error();
            }
            const std::string text = fmt::format(
                "waiting for processes of the run before, which are about to end: {}",
                left.empty() ? spawner_.spawner : left.front()
            );
            if (!countdown_.wait(kIntervalHere, text, text)) {
                return false;
            }
        }
    }

  private:
    void kill(const std::vector<pid_t>& left) {
        for (const pid_t pid : left) {
            ::kill(pid, SIGKILL);
        }
        if (lives(spawner_.spawner, spawner_.spawner_started)) {
            ::kill(static_cast<pid_t>(spawner_.spawner), SIGKILL);
        }
        waiting_.say(fmt::format("killed {} processes that the run before had left", left.size()));
        killed_at_ = monotonic_now();
    }

    const std::string& directory_;
    const Waiting& waiting_;
    Countdown countdown_;
    RunIdentity spawner_;
    std::optional<Duration> killed_at_;
};

bool may_live(const TeamFile& team, const TeamMember& agent) {
    if (has_signed_off(team, agent)) {
        return false;
    }
    static const std::string boot = [] {
        std::ifstream file("/proc/sys/kernel/random/boot_id");
        std::string id;
        std::getline(file, id);
        return id;
    }();
    const bool is_here = agent.boot_id == boot && agent.host == node_name();
    return !is_here || process_start_time(static_cast<pid_t>(agent.pid)) != 0;
}

std::string names_of(const std::vector<TeamMember>& agents) {
    constexpr std::size_t kMost = 8;
    std::string names;
    for (std::size_t index = 0; index < std::min(agents.size(), kMost); ++index) {
        names += (index == 0 ? "" : ", ") + agents[index].node;
    }
    return agents.size() > kMost ? fmt::format("{} and {} more", names, agents.size() - kMost)
                                 : names;
}

/// Waits for agents on other nodes.
Result<bool> outwait_agents(
    const TeamFile& team,
    Duration silent,
    const Waiting& waiting,
    const std::function<Status()>& keep
) {
    const Duration end = monotonic_now() + team.lease + kAfterLastSign - silent;
    Countdown countdown(waiting);
    std::vector<TeamMember> living = team.agents;
    while (true) {
        const auto gone = [&](const TeamMember& agent) { return !may_live(team, agent); };
        living.erase(std::remove_if(living.begin(), living.end(), gone), living.end());
        const Duration left = end - monotonic_now();
        if (living.empty() || left <= Duration{0}) {
            return true;
        }
        if (Status kept = keep(); !kept.ok()) {
            return kept.error();
        }
        const std::string names = names_of(living);
        const std::string first = fmt::format(
            "the head of the run before is gone, but its agents may still run trials until their "
            "lease is over: {}; waiting for {}, until {}, so that no trial runs twice",
            names,
            whole_seconds(left),
            clock_text(left)
        );
        const std::string rest =
            fmt::format("waiting for old agents ({}): {} left", names, whole_seconds(left));
        if (!countdown.wait(kInterval, first, rest)) {
            return false;
        }
    }
}

}  // namespace

std::vector<pid_t> trial_processes(const std::string& directory) {
    std::vector<pid_t> found;
    std::error_code failed;
    for (fs::directory_iterator entry("/proc", failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        std::ifstream file(entry->path() / "environ", std::ios::binary);
        const std::string environment{std::istreambuf_iterator<char>(file), {}};
        const auto pid = static_cast<pid_t>(std::stol(name));
        if (holds_path_below(environment, directory) && process_start_time(pid) != 0) {
            found.push_back(pid);
        }
    }
    return found;
}

Result<std::optional<OwnerFile>>
take_ownership(const std::string& directory, pid_t spawner, bool patient, const Waiting& waiting) {
    Countdown countdown(waiting);
    std::optional<Holder> first;
    const Duration begin = monotonic_now();
    while (true) {
        Result<std::variant<OwnerFile, Holder>> taken = OwnerFile::take(directory, spawner);
        if (!taken.ok()) {
            return taken.error();
        }
        if (auto* owner = std::get_if<OwnerFile>(&*taken)) {
            return std::optional<OwnerFile>(std::move(*owner));
        }
        const Holder& holder = std::get<Holder>(*taken);
        first = first ? first : holder;
        const bool gave_sign = holder.stamp != first->stamp || holder.who.id != first->who.id;
        if (holder.state == Holder::State::Living || gave_sign) {
            if (!patient || !is_of_earlier_incarnation(holder.who) ||
                monotonic_now() - begin > kPatienceWithIncarnation) {
                return refusal(directory, holder);
            }
            const std::string text = fmt::format(
                "{}, in this Slurm job before it was put back into the queue; waiting until Slurm "
                "tells it so and it ends",
                who_holds(directory, holder)
            );
            if (!countdown.wait(kInterval, text, text)) {
                return std::optional<OwnerFile>();
            }
            continue;
        }
        if (!patient) {
            Error refused = refusal(directory, holder);
            refused.message += "; if that host is dead, the experiment is free within a minute";
            return refused;
        }
        // A living owner is seen within two heartbeats: no word about waiting before.
        if (monotonic_now() - begin < 2 * OwnerFile::kHeartbeat) {
            waiting.breathe();
            pollfd stop{waiting.stop_fd, POLLIN, 0};
            constexpr int kPause = 200;
            if (::poll(&stop, 1, kPause) > 0) {
                return std::optional<OwnerFile>();
            }
            continue;
        }
        const Duration left = OwnerFile::kSilence + 1s - holder.silent;
        const std::string text = fmt::format(
            "{}; waiting for {}, until {}, to see whether it is dead (--no-wait refuses at once)",
            who_holds(directory, holder),
            whole_seconds(left),
            clock_text(left)
        );
        const std::string rest = fmt::format(
            "waiting for the owner on {}: {} left", holder.who.host, whole_seconds(left)
        );
        if (!countdown.wait(kInterval, text, rest)) {
            return std::optional<OwnerFile>();
        }
    }
}

Result<bool>
outwait_old_run(const std::string& directory, const OwnerFile& owner, const Waiting& waiting) {
    const std::optional<TeamFile> team = read_team(directory);
    if (!team && !owner.predecessor()) {
        return true;
    }
    Duration touch_at = monotonic_now();
    const auto keep = [&] {
        Status kept = Ok{};
        if (monotonic_now() >= touch_at) {
            kept = owner.touch();
            touch_at = monotonic_now() + OwnerFile::kHeartbeat;
        }
        // Trouble of the storage may pass; whoever begins to write will see.
        const bool is_lost = !kept.ok() && kept.error().code == ErrorCode::Conflict;
        return is_lost ? kept : Status(Ok{});
    };
    Result<bool> over = Remains(directory, owner, waiting).outwait(keep);
    if (!over.ok() || !*over || !team) {
        return over;
    }
    const Duration silent = owner.predecessor() ? owner.predecessor()->silent : 0s;
    over = outwait_agents(*team, silent, waiting, keep);
    if (over.ok() && *over) {
        remove_team(directory);
    }
    return over;
}

}  // namespace muster
