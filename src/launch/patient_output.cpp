// SPDX-License-Identifier: Apache-2.0

#include "launch/patient_output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <unistd.h>

namespace muster {
namespace {

/// Whether a write would wait for a reader.
bool is_stuck(int fd) {
    pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
    return ::poll(&one, 1, 0) == 0;
}

}  // namespace

void PatientOutput::show(std::string_view text) {
    kept_ += text;
    write();
}

void PatientOutput::write() {
    std::size_t done = 0;
    while (done < kept_.size() && !is_stuck(fd_)) {
        // A pipe that has room has it for as much as this.
        const std::size_t size = std::min<std::size_t>(kept_.size() - done, PIPE_BUF);
        const ssize_t written = ::write(fd_, kept_.data() + done, size);
        if (written >= 0) {
            done += static_cast<std::size_t>(written);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            // Nobody will ever read it.
            done = kept_.size();
        }
    }
    kept_.erase(0, done);
}

}  // namespace muster
