// SPDX-License-Identifier: Apache-2.0

#include "runtime/signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/exit_line.hpp"

namespace muster {
namespace {

constexpr std::size_t kLongestLine = 256;

bool watch(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool is_readable(int fd) {
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
}

}  // namespace

Result<SignalSource> SignalSource::open() {
    sigset_t wanted;
    sigset_t before;
    sigemptyset(&wanted);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
        struct sigaction now {};
        // A blocked signal is delivered to a signalfd even where it is ignored.
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
            sigaddset(&wanted, number);
        }
    }
    UniqueFd signals(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!signals || !fd || !watch(fd.get(), signals.get()) ||
        ::pthread_sigmask(SIG_BLOCK, &wanted, &before) != 0) {
        const std::string reason = std::generic_category().message(errno);
        return Error{ErrorCode::System, "cannot take over signals: " + reason};
    }
    return SignalSource(std::move(fd), std::move(signals), before);
}

SignalSource::SignalSource(UniqueFd fd, UniqueFd signals, sigset_t before)
    : fd_(std::move(fd)),
      signals_(std::move(signals)),
      before_(before),
      token_(launch_token()) {
    // Only rank 0's is a pipe; a file, as /dev/null, can't be watched.
    if (!token_.empty() && !watch(fd_.get(), STDIN_FILENO)) {
        token_.clear();
    }
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
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        numbers.push_back(static_cast<int>(info.ssi_signo));
    }
    if (!token_.empty()) {
        receive_lines(numbers);
    }
    return numbers;
}

void SignalSource::receive_lines(std::vector<int>& numbers) {
    while (is_readable(STDIN_FILENO)) {
        std::array<char, kLongestLine> bytes{};
        const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (size <= 0) {
            // Nobody will say anything more.
            ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
            token_.clear();
            return;
        }
        for (const char letter : std::string_view(bytes.data(), static_cast<std::size_t>(size))) {
            if (letter != '\n') {
                line_.resize(std::min(line_.size(), kLongestLine));
                line_ += letter;
                continue;
            }
            if (const std::optional<int> number = signal_of(line_, token_)) {
                numbers.push_back(*number);
            }
            line_.clear();
        }
    }
}

}  // namespace muster
