// SPDX-License-Identifier: Apache-2.0

#include "runtime/signals.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/exit_line.hpp"

namespace muster {

Result<SignalSource> SignalSource::open() {
    sigset_t wanted;
    sigset_t before;
    sigemptyset(&wanted);
    // Read before any other thread could change the environment.
    const bool launched =
        std::getenv(kLaunchToken.data()) != nullptr;  // NOLINT(concurrency-mt-unsafe)
    std::vector<int> numbers{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    if (launched) {
        numbers.push_back(kCancelSignal);
    }
    for (const int number : numbers) {
        struct sigaction now {};
        // A blocked signal is delivered to a signalfd even where it is ignored.
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
            sigaddset(&wanted, number);
        }
    }
    UniqueFd fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd || ::pthread_sigmask(SIG_BLOCK, &wanted, &before) != 0) {
        const std::string reason = std::generic_category().message(errno);
        return Error{ErrorCode::System, "cannot take over signals: " + reason};
    }
    return SignalSource(std::move(fd), before);
}

SignalSource::~SignalSource() {
    if (fd_) {
        // What came too late to be acted on must not kill the program on its last steps.
        receive();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
}

std::vector<int> SignalSource::receive() {
    std::vector<int> numbers;
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        const auto number = static_cast<int>(info.ssi_signo);
        numbers.push_back(number == kCancelSignal ? SIGINT : number);
    }
    return numbers;
}

}  // namespace muster
