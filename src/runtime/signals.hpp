// SPDX-License-Identifier: Apache-2.0
//
// signals - SIGINT, SIGTERM, SIGUSR1 and SIGHUP as something to read, while it exists. One that
// was ignored when muster started (nohup, a background job) stays ignored. Those that `muster
// launch` got come as lines on stdin.

#pragma once

#include <csignal>
#include <string>
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
    SignalSource(UniqueFd fd, UniqueFd signals, sigset_t before);

    void receive_lines(std::vector<int>& numbers);

    /// Readable when one of the two is that something may come from: the signals of this process,
    /// and, under `muster launch`, stdin.
    UniqueFd fd_;
    UniqueFd signals_;
    sigset_t before_;
    /// Empty without `muster launch`.
    std::string token_;
    /// A line of stdin that has no end yet.
    std::string line_;
};

}  // namespace muster
