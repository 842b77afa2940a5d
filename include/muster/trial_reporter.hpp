// SPDX-License-Identifier: Apache-2.0
//
// trial_reporter - the client of the report protocol. Included by muster/trial.hpp, whose functions
// share one Reporter; a program needs one of its own only when it wants other times to wait.
//
// Header only, standard library and POSIX only.

#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "muster/trial_config.hpp"
#include "muster/trial_metric.hpp"

namespace muster::trial {

enum class Decision { Continue, Stop };

/// How long a Reporter waits, and whether it says what went wrong.
struct ReporterOptions {
    /// How long report() waits for a full socket before it gives the connection up.
    std::chrono::milliseconds send_timeout{60'000};
    /// How long a decision or a config is waited for.
    std::chrono::milliseconds answer_timeout{60'000};
    /// Problems are kept in last_problem() alone, not printed.
    bool quiet = false;
    /// How long a checkpoint may take until it is safe: storage can be slow.
    std::chrono::milliseconds checkpoint_timeout{600'000};
};

/// One connection to muster, made when it is first needed and again when it was lost. Most programs
/// use the free functions below, which share one.
///
/// Thread: any, but a child after fork() makes its own.
class Reporter {
  public:
    explicit Reporter(ReporterOptions options = {}) : options_(options) {}
    ~Reporter() { close(); }
    Reporter(const Reporter&) = delete;
    Reporter& operator=(const Reporter&) = delete;

    /// Hands the metrics over; false when that was not possible. True does not mean that they were
    /// accepted: finish() does.
    bool report(const Metrics& metrics) {
        const std::lock_guard lock(mutex_);
        if (!deliver(report_line(metrics, false))) {
            return false;
        }
        // What was refused is said soon.
        read_now();
        return true;
    }

    /// Reports and waits for the decision. Continue when there is nobody to decide.
    Decision report_and_wait(const Metrics& metrics) {
        const std::lock_guard lock(mutex_);
        if (!deliver(report_line(metrics, true)) || !await_answer(options_.answer_timeout)) {
            return stop_ ? Decision::Stop : Decision::Continue;
        }
        const bool stop = stop_ || field(*answer_, "decision") == "stop";
        return stop ? Decision::Stop : Decision::Continue;
    }

    /// The config as muster knows it: the line that answers.
    std::optional<Fields> ask_config() {
        const std::lock_guard lock(mutex_);
        if (!deliver("{\"type\": \"config\"}\n") || !await_answer(options_.answer_timeout)) {
            return std::nullopt;
        }
        return answer_;
    }

    /// Asks muster to keep the directory `fresh`, which lies whole and synced in checkpoint_dir(),
    /// and waits until it does. The name that it has then; nothing when it is not kept.
    /// trial::checkpoint() does the whole.
    std::optional<std::string> keep(std::string_view fresh, std::optional<double> step) {
        const std::lock_guard lock(mutex_);
        std::string line = "{\"type\": \"checkpoint\", " + Metric("path", fresh).json();
        if (step) {
            line += ", " + Metric("step", *step).json();
        }
        if (!deliver(line + "}\n") || !await_answer(options_.checkpoint_timeout)) {
            return std::nullopt;
        }
        return std::string(field(*answer_, "name"));
    }

    /// Waits until what was reported so far has been taken in on this node.
    void settle() {
        const std::lock_guard lock(mutex_);
        if (fd_ >= 0 && send("{\"type\": \"config\"}\n")) {
            await_answer(options_.answer_timeout);
        }
    }

    /// Whether muster has asked this trial to end. Never waits.
    bool should_stop() {
        const std::lock_guard lock(mutex_);
        look();
        return stop_;
    }

    /// When the time of this run ends, once muster has warned of it. Never waits.
    std::optional<std::chrono::steady_clock::time_point> end() {
        const std::lock_guard lock(mutex_);
        look();
        return end_;
    }

    /// Whether muster has warned of the end and no checkpoint was saved since. Never waits.
    bool should_checkpoint() {
        const std::lock_guard lock(mutex_);
        look();
        return wants_checkpoint_;
    }

    void checkpoint_saved() {
        const std::lock_guard lock(mutex_);
        wants_checkpoint_ = false;
    }

    /// Says what went wrong, once while it lasts.
    void complain(const std::string& problem) {
        const std::lock_guard lock(mutex_);
        note(problem);
    }

    /// Says that nothing more comes and waits until everything was taken. False when something was
    /// refused, or was not taken within the time for answers.
    bool finish() {
        const std::lock_guard lock(mutex_);
        if (fd_ < 0) {
            return problem_.empty();
        }
        ::shutdown(fd_, SHUT_WR);
        const Clock::time_point deadline = Clock::now() + options_.answer_timeout;
        while (fd_ >= 0 && wait_for(POLLIN, deadline)) {
            read_now(true);
        }
        if (fd_ >= 0) {
            give_up("muster did not answer in time");
        }
        return problem_.empty();
    }

    /// What went wrong last; empty when nothing has.
    std::string last_problem() {
        const std::lock_guard lock(mutex_);
        return problem_;
    }

    pid_t process() const { return process_; }

    /// Closes the connection without a word, also while another thread holds it: for the child
    /// after fork(), whose parent goes on with it.
    void abandon() { close(); }

  private:
    using Clock = std::chrono::steady_clock;

    static std::string report_line(const Metrics& metrics, bool wait) {
        std::string line = "{\"type\": \"report\", \"metrics\": {";
        for (const Metric& metric : metrics) {
            line += &metric == &metrics.front() ? "" : ", ";
            line += metric.json();
        }
        line += wait ? "}, \"wait\": true}\n" : "}}\n";
        return line;
    }

    static std::string_view field(const Fields& fields, std::string_view name) {
        for (const Field& candidate : fields) {
            if (candidate.name == name) {
                return candidate.text;
            }
        }
        return {};
    }

    void close() {
        if (fd_ >= 0) {
            ::close(std::exchange(fd_, -1));
        }
    }

    void give_up(const std::string& problem) {
        close();
        note(problem);
    }

    /// Each problem is printed once while it lasts.
    void note(const std::string& problem) {
        if (problem != problem_ && !options_.quiet) {
            std::fprintf(stderr, "muster: %s\n", problem.c_str());
        }
        problem_ = problem;
    }

    bool connect() {
        if (fd_ >= 0 || turned_away_) {
            return fd_ >= 0;
        }
        const std::string path = detail::environment("MUSTER_SOCKET");
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.empty()) {
            return false;
        }
        if (path.size() >= sizeof address.sun_path) {
            note("MUSTER_SOCKET is too long for a socket: " + path);
            return false;
        }
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || !connect_to(fd, address)) {
            const int reason = errno;
            if (fd >= 0) {
                ::close(fd);
            }
            note("cannot reach muster at " + path + " (error " + std::to_string(reason) + ")");
            return false;
        }
        fd_ = fd;
        in_.clear();
        lines_ = 0;
        std::string hello = "{\"type\": \"hello\", \"protocol\": 1, " +
                            Metric("trial", detail::environment("MUSTER_TRIAL_ID")).json() + ", " +
                            Metric("attempt", detail::environment("MUSTER_ATTEMPT")).json();
        if (const std::string member = detail::environment("MUSTER_MEMBER"); !member.empty()) {
            hello += ", \"member\": " + member;
        }
        const bool good = send(hello + "}\n");
        if (!good && !turned_away_) {
            note("muster has closed the connection");
        }
        return good;
    }

    /// A full queue of the listener is waited for, in small steps.
    bool connect_to(int fd, const sockaddr_un& address) const {
        const Clock::time_point deadline = Clock::now() + options_.send_timeout;
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        while (::connect(fd, generic, sizeof address) != 0) {
            if ((errno != EAGAIN && errno != EINTR) || Clock::now() >= deadline) {
                return false;
            }
            ::poll(nullptr, 0, 1);
        }
        return true;
    }

    bool wait_for(short what, Clock::time_point deadline) const {
        while (true) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
            pollfd entry{fd_, what, 0};
            const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
            if (ready > 0 || (ready < 0 && errno != EINTR) || left <= 0) {
                return ready > 0;
            }
        }
    }

    /// Sends the line; on a new connection when the one there is turns out to be closed.
    bool deliver(const std::string& line) {
        for (int attempt = 0; attempt < 2; ++attempt) {
            if (!connect()) {
                return false;
            }
            if (send(line)) {
                return true;
            }
            if (!was_closed_ || turned_away_) {
                return false;
            }
        }
        note("muster has closed the connection");
        return false;
    }

    bool send(const std::string& line) {
        const Clock::time_point deadline = Clock::now() + options_.send_timeout;
        std::size_t sent = 0;
        was_closed_ = false;
        ++lines_;
        while (sent < line.size()) {
            const ssize_t count = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
            if (count >= 0) {
                sent += static_cast<std::size_t>(count);
            } else if (errno == EAGAIN) {
                // Half a line is of no use, so the connection ends here.
                if (!wait_for(POLLOUT, deadline)) {
                    give_up("muster takes no reports");
                    return false;
                }
            } else if (errno != EINTR) {
                // Why it was closed may stand in what it said last.
                read_now(true);
                close();
                was_closed_ = true;
                return false;
            }
        }
        return true;
    }

    /// Takes in what was said meanwhile.
    void look() {
        if (connect()) {
            read_now();
        }
    }

    /// Waits for the answer to the line sent last.
    bool await_answer(std::chrono::milliseconds patience) {
        answer_.reset();
        const Clock::time_point deadline = Clock::now() + patience;
        while (fd_ >= 0 && !answer_) {
            if (!wait_for(POLLIN, deadline)) {
                give_up("muster did not answer in time");
                return false;
            }
            read_now();
        }
        return answer_ && field(*answer_, "type") != "error";
    }

    /// Takes in what muster has said, without waiting. `ending`: the end is no surprise.
    void read_now(bool ending = false) {
        char bytes[4096];
        while (fd_ >= 0) {
            const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count < 0 && errno == EAGAIN) {
                return;
            }
            if (count <= 0) {
                close();
                if (!ending && !turned_away_) {
                    note("muster has closed the connection");
                }
                return;
            }
            in_.append(bytes, static_cast<std::size_t>(count));
            std::size_t begin = 0;
            for (std::size_t end = 0; (end = in_.find('\n', begin)) != std::string::npos;) {
                handle(std::string_view(in_).substr(begin, end - begin));
                begin = end + 1;
            }
            in_.erase(0, begin);
        }
    }

    void handle(std::string_view line) {
        std::optional<Fields> fields = parse_fields(line);
        if (!fields) {
            return;
        }
        const std::string_view type = field(*fields, "type");
        if (type == "stop") {
            stop_ = true;
        } else if (type == "warning") {
            warn(field(*fields, "seconds"));
        } else if (type == "error") {
            note("refused: " + std::string(field(*fields, "text")));
            turned_away_ = turned_away_ || field(*fields, "closed") == "true";
        }
        if (field(*fields, "line") == std::to_string(lines_)) {
            answer_ = std::move(fields);
        }
    }

    void warn(std::string_view seconds) {
        double left = 0;
        std::from_chars(seconds.data(), seconds.data() + seconds.size(), left);
        constexpr double kMost = 1e8;
        const std::chrono::duration<double> bounded(std::clamp(left, 0.0, kMost));
        end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(bounded);
        wants_checkpoint_ = true;
    }

    ReporterOptions options_;
    pid_t process_ = ::getpid();
    std::mutex mutex_;
    int fd_ = -1;
    /// Lines sent on this connection: answers name the line that they answer.
    std::uint64_t lines_ = 0;
    std::string in_;
    std::optional<Fields> answer_;
    std::string problem_;
    bool stop_ = false;
    std::optional<Clock::time_point> end_;
    bool wants_checkpoint_ = false;
    bool was_closed_ = false;
    bool turned_away_ = false;
};

namespace detail {

/// The process's own Reporter; a child after fork() gets a new one.
inline Reporter& reporter() {
    static std::atomic<Reporter*> current{nullptr};
    Reporter* known = current.load();
    if (known != nullptr && known->process() == ::getpid()) {
        return *known;
    }
    if (known != nullptr) {
        known->abandon();
    }
    auto* fresh = new Reporter();
    if (current.compare_exchange_strong(known, fresh)) {
        return *fresh;
    }
    delete fresh;
    return *known;
}

}  // namespace detail

}  // namespace muster::trial
