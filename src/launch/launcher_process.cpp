// SPDX-License-Identifier: Apache-2.0

#include "launch/launcher_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/exit_line.hpp"
#include "launch/stderr_filter.hpp"
#include "posix/unique_fd.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kContinue = 75;
constexpr int kSystem = 5;
/// From rank 0's last word until the launcher is told to end, and between the steps of that: Open
/// MPI's waits two seconds for ranks that left without MPI_Finalize, and for ever for a lost host.
constexpr auto kPatience = 3s;
constexpr auto kBetweenTerms = 300ms;
constexpr auto kBeforeKill = 700ms;
/// After the launcher itself is gone, what its stderr may still hold.
constexpr auto kDrainPatience = 200ms;
constexpr auto kQuiet = 1s;
constexpr auto kOrphanPatience = 2s;

Error failed_to(const std::string& what) {
    return {
        ErrorCode::System,
        fmt::format("cannot {}: {}", what, std::generic_category().message(errno))};
}

class Signals {
  public:
    Signals() {
        sigemptyset(&wanted_);
        for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
            struct sigaction now {};
            if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
                sigaddset(&wanted_, number);
            }
        }
        ::pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
        fd_.reset(::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    ~Signals() { restore(); }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int fd() const { return fd_.get(); }
    void restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    std::optional<int> next() const {
        signalfd_siginfo info{};
        const bool came = ::read(fd_.get(), &info, sizeof info) == sizeof info;
        return came ? std::optional(static_cast<int>(info.ssi_signo)) : std::nullopt;
    }

  private:
    sigset_t wanted_{};
    sigset_t before_{};
    UniqueFd fd_;
};

class LauncherRun {
  public:
    LauncherRun(
        const std::vector<std::string>& line,
        std::string path,
        std::string token,
        Duration patience
    )
        : line_(line),
          path_(std::move(path)),
          filter_(std::move(token)),
          begin_by_(Clock::now() + patience) {}

    Result<LaunchEnd> run() {
        // What mpirun starts and leaves behind (ssh to a host that does not answer) comes to us.
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (Status started = start(); !started.ok()) {
            return started.error();
        }
        while (!is_over()) {
            turn();
        }
        show(filter_.flush());
        end_orphans();
        remove_session();
        return how_it_ended();
    }

  private:
    Status start() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            return failed_to("make a pipe");
        }
        errors_.reset(ends[0]);
        const UniqueFd writing(ends[1]);
        ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) {
            return failed_to("start " + line_.front());
        }
        if (pid_ == 0) {
            become_launcher(writing.get(), parent);
        }
        // Both sides, so that it is done whoever comes first.
        ::setpgid(pid_, pid_);
        process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        return process_ ? Status(Ok{}) : Status(failed_to("watch " + line_.front()));
    }

    /// A group of its own: a terminal's ^C is for muster, which knows better how to end.
    [[noreturn]] void become_launcher(int errors, pid_t parent) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(1);
        }
        signals_.restore();
        const int null = ::open("/dev/null", O_RDONLY);
        ::dup2(null, STDIN_FILENO);
        ::dup2(errors, STDERR_FILENO);
        std::vector<char*> words;
        words.reserve(line_.size() + 1);
        for (const std::string& word : line_) {
            words.push_back(const_cast<char*>(word.c_str()));  // NOLINT: what execv wants
        }
        words.push_back(nullptr);
        ::execv(path_.c_str(), words.data());
        ::_exit(127);
    }

    void turn() {
        std::array<pollfd, 3> fds{{
            {signals_.fd(), POLLIN, 0},
            {errors_ ? errors_.get() : -1, POLLIN, 0},
            {status_ ? -1 : process_.get(), POLLIN, 0},
        }};
        const int ready = ::poll(fds.data(), fds.size(), milliseconds_to_wait());
        if (ready > 0 && fds[0].revents != 0) {
            while (const std::optional<int> number = signals_.next()) {
                on_signal(*number);
            }
        }
        if (ready > 0 && fds[1].revents != 0) {
            read_errors();
        } else if (filter_.holds_back() && Clock::now() - heard_ > kQuiet) {
            show(filter_.flush());
        }
        if (ready > 0 && fds[2].revents != 0) {
            reap();
        }
        if (filter_.exit_code() && !said_at_) {
            said_at_ = Clock::now();
        }
        if (!filter_.has_begun() && !filter_.exit_code() && Clock::now() > begin_by_) {
            is_too_late_ = true;
            end_step(Clock::now() - begin_by_);
        } else if (said_at_ && Clock::now() - *said_at_ > kPatience) {
            end_step(Clock::now() - *said_at_ - kPatience);
        }
    }

    int milliseconds_to_wait() const {
        const bool soon = said_at_ || status_ || filter_.holds_back() || killing_ > 0;
        return soon ? 50 : 1'000;
    }

    void on_signal(int number) {
        if (number == SIGINT && ++interrupts_ > 2) {
            show("muster launch: ending the launcher\n");
            signal_launcher(SIGKILL);
            return;
        }
        // mpirun and srun pass these on to every rank; of TERM and INT they would kill them.
        signal_launcher(number == SIGINT ? kCancelSignal : SIGUSR1);
    }

    void signal_launcher(int number) const {
        if (!status_) {
            ::kill(pid_, number);
        }
    }

    void read_errors() {
        std::array<char, 16'384> bytes{};
        while (true) {
            const ssize_t size = ::read(errors_.get(), bytes.data(), bytes.size());
            if (size > 0) {
                heard_ = Clock::now();
                show(filter_.take({bytes.data(), static_cast<std::size_t>(size)}));
            } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
                errors_.reset();
                return;
            } else {
                return;
            }
        }
    }

    static void show(std::string_view text) {
        while (!text.empty()) {
            const ssize_t size = ::write(STDERR_FILENO, text.data(), text.size());
            if (size > 0) {
                text.remove_prefix(static_cast<std::size_t>(size));
            } else if (errno == EAGAIN) {
                pollfd fd{STDERR_FILENO, POLLOUT, 0};
                ::poll(&fd, 1, 1000);
            } else if (errno != EINTR) {
                return;
            }
        }
    }

    void reap() {
        int status = 0;
        if (::waitpid(pid_, &status, WNOHANG) == pid_) {
            status_ = status;
            gone_at_ = Clock::now();
        }
    }

    /// The launcher does not end by itself: it waits for a host that is gone, or never was there.
    void end_step(Clock::duration late) {
        const auto step = [&](int place, Clock::duration after, int number) {
            if (killing_ == place && late > after) {
                ++killing_;
                signal_launcher(number);
            }
        };
        step(0, 0s, SIGTERM);
        step(1, kBetweenTerms, SIGTERM);
        step(2, kBetweenTerms + kBeforeKill, SIGKILL);
    }

    bool is_over() const {
        return status_ && (!errors_ || Clock::now() - gone_at_ > kDrainPatience);
    }

    static std::vector<pid_t> children() {
        std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
        return {std::istream_iterator<pid_t>(file), std::istream_iterator<pid_t>()};
    }

    static void end_orphans() {
        const Clock::time_point end = Clock::now() + kOrphanPatience;
        for (std::vector<pid_t> left = children(); !left.empty() && Clock::now() < end;
             left = children()) {
            for (const pid_t child : left) {
                ::kill(child, SIGKILL);
            }
            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
            }
            ::poll(nullptr, 0, 10);
        }
    }

    /// What an mpirun leaves behind that was killed.
    void remove_session() const {
        if (killing_ < 3 && interrupts_ < 3) {
            return;
        }
        std::array<char, 256> host{};
        ::gethostname(host.data(), host.size() - 1);
        const std::string name(host.data(), std::strcspn(host.data(), "."));
        std::error_code ignored;
        std::filesystem::remove_all(
            std::filesystem::temp_directory_path(ignored) /
                fmt::format("ompi.{}.{}/pid.{}", name, ::getuid(), pid_),
            ignored
        );
    }

    LaunchEnd how_it_ended() const {
        if (filter_.exit_code()) {
            return {*filter_.exit_code(), ""};
        }
        if (is_too_late_) {
            return {
                kSystem,
                fmt::format(
                    "muster did not begin in time: {} waits for a host that it can't reach, or "
                    "that "
                    "can't reach this one (try --interface, or leave that host out; "
                    "--start-timeout says how long to wait)",
                    line_.front()
                )};
        }
        const std::string how = WIFSIGNALED(*status_)
                                    ? fmt::format("was ended by signal {}", WTERMSIG(*status_))
                                    : fmt::format("ended with code {}", WEXITSTATUS(*status_));
        if (filter_.has_begun()) {
            return {
                kContinue,
                fmt::format(
                    "rank 0 is gone without a word, and {} {}; what was reported is kept, and the "
                    "same command goes on",
                    line_.front(),
                    how
                )};
        }
        return {kSystem, fmt::format("{} {} before muster began on rank 0", line_.front(), how)};
    }

    const std::vector<std::string>& line_;
    std::string path_;
    StderrFilter filter_;
    Signals signals_;
    pid_t pid_ = -1;
    UniqueFd process_;
    UniqueFd errors_;
    std::optional<int> status_;
    std::optional<Clock::time_point> said_at_;
    Clock::time_point gone_at_;
    Clock::time_point heard_;
    int interrupts_ = 0;
    Clock::time_point begin_by_;
    bool is_too_late_ = false;
    /// Steps taken to end the launcher.
    int killing_ = 0;
};

}  // namespace

std::string find_program(const std::string& name) {
    // Read before any other thread could change the environment.
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
    while (!rest.empty()) {
        const std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
        const std::string candidate = fmt::format("{}/{}", folder, name);
        if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
    }
    return "";
}

std::string token_for_launch() {
    std::array<unsigned char, 8> bytes{};
    (void)!::getrandom(bytes.data(), bytes.size(), 0);
    std::string token;
    for (const unsigned char byte : bytes) {
        token += fmt::format("{:02x}", byte);
    }
    // One thread, before anything reads it.
    ::setenv(kLaunchToken.data(), token.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    winsize size{};
    const bool seen =
        ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    const std::string terminal = seen ? fmt::format("{}x{}", size.ws_col, size.ws_row) : "none";
    ::setenv(kTerminal.data(), terminal.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ::setenv("PMIX_OUTPUT_REDIRECT", "syslog", 0);    // NOLINT(concurrency-mt-unsafe)
    return token;
}

Result<LaunchEnd>
run_launcher(const std::vector<std::string>& line, const std::string& token, Duration patience) {
    const std::string path = find_program(line.front());
    if (path.empty()) {
        return Error{
            ErrorCode::NotFound,
            fmt::format(
                "{} is not on PATH{}",
                line.front(),
                line.front() == "mpirun" ? "; on Debian it is in the package openmpi-bin, on "
                                           "clusters often behind `module load openmpi`"
                                         : ""
            )};
    }
    return LauncherRun(line, path, token, patience).run();
}

}  // namespace muster
