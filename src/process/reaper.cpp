// SPDX-License-Identifier: Apache-2.0

#include "process/reaper.hpp"

#include <csignal>

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.hpp"

namespace muster {

UniqueFd become_reaper(const char* name, pid_t parent) {
    ::setsid();
    ::prctl(PR_SET_NAME, name);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) {
        return {};
    }
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::sigaddset(&set, SIGTERM);
    UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    check(static_cast<bool>(signals), "a reaper has room for a signalfd");
    return signals;
}

}  // namespace muster
