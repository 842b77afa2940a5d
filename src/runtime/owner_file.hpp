// SPDX-License-Identifier: Apache-2.0
//
// owner_file - says who runs an experiment, so that no second run writes into its directory. It
// needs no locks, which many shared file systems lack: it is made where none is, and its age, by
// the file server's own clock, tells a living owner on another host from a dead one.

#pragma once

#include <chrono>
#include <string>

#include "muster/error.hpp"

namespace muster {

class OwnerFile {
  public:
    /// Takes `directory`/owner. One left by a process of this host that is gone, or by another
    /// host that has not touched it for a minute, is taken over.
    /// Errors: Conflict, naming who holds it; System.
    static Result<OwnerFile> take(const std::string& directory);

    /// Gives it up, if it is still ours.
    ~OwnerFile();
    OwnerFile(OwnerFile&& other) noexcept;
    OwnerFile& operator=(OwnerFile&&) = delete;
    OwnerFile(const OwnerFile&) = delete;
    OwnerFile& operator=(const OwnerFile&) = delete;

    /// Says that we are alive. To be called every kHeartbeat or so, and at the end.
    /// Errors: System, when the file is no longer ours: the directory was removed, or another run
    /// took it over. Nothing more may be written then.
    Status touch() const;

    static constexpr std::chrono::seconds kHeartbeat{10};
    /// An owner on another host that was silent for so long is dead.
    static constexpr std::chrono::seconds kSilence{60};

  private:
    OwnerFile(std::string path, std::string content)
        : path_(std::move(path)),
          content_(std::move(content)) {}

    std::string path_;
    /// What we wrote: host, pid and start time of the process, so that no two are the same.
    std::string content_;
};

}  // namespace muster
