// SPDX-License-Identifier: Apache-2.0
#include "process/spawner.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/child.hpp"
#include "process/files.hpp"
#include "process/process_tree.hpp"
#include "process/spawner_loop.hpp"

namespace muster {
namespace {

constexpr int kSpawnerSocket = 3;

/// Every signal at its default and blocked: trials start from defaults, and spawner and keepers
/// read the few signals that concern them.
void settle_signals() {
    for (int number = 1; number <= SIGRTMAX; ++number) {
        // Fails for SIGKILL, SIGSTOP and those that libc keeps for itself.
        ::signal(number, SIG_DFL);
    }
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// Leaves nothing open but /dev/null as 0, 1 and 2, and the socket as 3.
void settle_descriptors(int socket) {
    const int null = ::open("/dev/null", O_RDWR);
    // Up and away first: the socket may be where /dev/null goes, and the other way round.
    const int socket_copy = ::fcntl(socket, F_DUPFD, kSpawnerSocket + 1);
    const int null_copy = ::fcntl(null, F_DUPFD, kSpawnerSocket + 1);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        ::dup2(null_copy, fd);
    }
    ::dup2(socket_copy, kSpawnerSocket);
    ::fcntl(kSpawnerSocket, F_SETFD, FD_CLOEXEC);
    ::close_range(kSpawnerSocket + 1, ~0U, 0);
}

}  // namespace

Result<Spawner> Spawner::start(
    const std::string& remove_at_end,
    const std::vector<std::uint32_t>& processing_units,
    const TrialFunctions& functions
) {
    if (threads_of(::getpid()).size() > 1) {
        return Error{
            ErrorCode::InvalidInput,
            "the program has other threads already: start muster before anything that makes "
            "threads"};
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return system_error("cannot open a socket to the process that starts trials", errno);
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    // Else every process of a trial would write it once more.
    std::cout.flush();
    std::fflush(nullptr);
    const pid_t self = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
        return system_error("cannot fork the process that starts trials (see 'ulimit -u')", errno);
    }
    if (pid == 0) {
        settle_signals();
        settle_descriptors(theirs.get());
        if (!processing_units.empty()) {
            // A refusal leaves trials where we are; nobody listens here yet.
            (void)bind_processes({::getpid()}, processing_units);
        }
        run_spawner(kSpawnerSocket, self, functions);
        if (!remove_at_end.empty()) {
            std::error_code ignored;
            std::filesystem::remove_all(remove_at_end, ignored);
        }
        ::_exit(0);
    }
    return Spawner(pid, std::move(ours));
}

}  // namespace muster
