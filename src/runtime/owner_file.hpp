// SPDX-License-Identifier: Apache-2.0
//
// owner_file - says who runs an experiment, so that no second run writes into its directory. It
// needs no locks, which many shared file systems lack, only that link() and rename() are atomic.
//
// The file `owner` is made by link(), which fails where it is already. A dead owner's file may be
// replaced by nobody but who holds the claim on it: the file `owner.after-<id of the dead>`, made
// by link() too, so that one alone gets it. Who died with a claim in his hand is succeeded by a
// claim on him, and so on. Since ids never come again, whoever is late with what he knew of the
// owner finds, with his claim in his hand, that the owner is another by now, and gives it back.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include <sys/types.h>

#include "muster/error.hpp"

namespace muster {

/// Who a run is: enough to tell whether it still lives, from its own host.
struct RunIdentity {
    /// Never given twice.
    std::string id;
    std::string host;
    /// The kernel's present boot, and its space of process ids: two machines, or containers, may
    /// have one name.
    std::string boot;
    std::string pid_space;
    std::int64_t pid = 0;
    /// process_start_time().
    std::int64_t started = 0;
    /// Seconds since 1970, UTC: when it took the experiment.
    std::int64_t since = 0;
    /// The process that all of its trials on its own host descend from; 0 when unknown.
    std::int64_t spawner = 0;
    std::int64_t spawner_started = 0;
    /// The Slurm job that it runs in, and how often that was put back into the queue before.
    std::string job;
    std::int64_t restarts = 0;

    friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

/// This process, with a new id.
RunIdentity own_identity(pid_t spawner);

/// Whether `who` is a process that this one could see in /proc.
bool is_on_this_host(const RunIdentity& who);

/// Whether it is a run of an earlier incarnation of the Slurm job that this process is in. Where
/// Slurm can't reach it, it ends once it has asked Slurm.
bool is_of_earlier_incarnation(const RunIdentity& who);

/// A process that is there, and began when it is said to have.
bool lives(std::int64_t pid, std::int64_t started);

/// Another run that has the directory, or seems to.
struct Holder {
    enum class State : std::uint8_t {
        /// A process of this host that lives.
        Living,
        /// Of another host: it lives if its file is touched again, and is dead after kSilence.
        Unknown,
    };
    State state = State::Living;
    RunIdentity who;
    /// How long ago it gave its last sign of life, by the clock of the file server.
    std::chrono::seconds silent{0};
    /// Changes with every sign of life.
    std::int64_t stamp = 0;
};

/// The dead run that was succeeded.
struct Predecessor {
    RunIdentity who;
    /// How long before this run took over it gave its last sign of life.
    std::chrono::seconds silent{0};
};

class OwnerFile {
  public:
    /// Takes `directory`/owner. One left by a process of this host that is gone, or by another
    /// host that has not touched it for longer than kSilence, is taken over; else it says who holds
    /// it. `spawner` is this run's.
    /// Errors: System.
    static Result<std::variant<OwnerFile, Holder>>
    take(const std::string& directory, pid_t spawner = 0);

    /// Gives it up, if it is still ours.
    ~OwnerFile();
    OwnerFile(OwnerFile&& other) noexcept;
    OwnerFile& operator=(OwnerFile&&) = delete;
    OwnerFile(const OwnerFile&) = delete;
    OwnerFile& operator=(const OwnerFile&) = delete;

    /// Says that we are alive. To be called every kHeartbeat or so, and at the end. Makes the file
    /// anew when it alone is gone.
    /// Errors: Conflict, when another run took it over: nothing more may be written then. System,
    /// when it can't be said at the moment: the directory is gone, say.
    /// Thread: any, one at a time.
    Status touch() const;

    /// Whom we took it over from; nothing when it was free.
    const std::optional<Predecessor>& predecessor() const { return predecessor_; }

    static constexpr std::chrono::seconds kHeartbeat{2};
    /// An owner on another host that was silent for so long is dead.
    static constexpr std::chrono::seconds kSilence{60};

  private:
    OwnerFile(std::string path, RunIdentity self, std::optional<Predecessor> predecessor)
        : path_(std::move(path)),
          self_(std::move(self)),
          predecessor_(std::move(predecessor)) {}

    std::string path_;
    RunIdentity self_;
    std::optional<Predecessor> predecessor_;
};

}  // namespace muster
