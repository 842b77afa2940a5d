// SPDX-License-Identifier: Apache-2.0
//
// signals - SIGINT, SIGTERM, SIGUSR1 and SIGHUP as something to read, while it exists. One that
// was ignored when muster started (nohup, a background job) stays ignored. Under `muster launch` a
// signal of its own stands for SIGINT.

#pragma once

#include <csignal>
#include <vector>

#include "muster/error.hpp"

#include "posix/unique_fd.hpp"

namespace muster {

class SignalSource {
  public:
    /// Errors: System.
    static Result<SignalSource> open();
    ~SignalSource();
    SignalSource(SignalSource&&) noexcept = default;
    SignalSource& operator=(SignalSource&&) = delete;
    SignalSource(const SignalSource&) = delete;
    SignalSource& operator=(const SignalSource&) = delete;

    int fd() const { return fd_.get(); }

    /// The numbers of those that came since the last call, in order.
    std::vector<int> receive();

  private:
    SignalSource(UniqueFd fd, sigset_t before) : fd_(std::move(fd)), before_(before) {}

    UniqueFd fd_;
    sigset_t before_;
};

}  // namespace muster
