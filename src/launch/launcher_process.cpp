// SPDX-License-Identifier: Apache-2.0

#include "launch/launcher_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/exit_line.hpp"
#include "launch/launcher_child.hpp"
#include "launch/patient_output.hpp"
#include "launch/stderr_filter.hpp"
#include "posix/unique_fd.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kCancelled = 4;
constexpr int kSystem = 5;
constexpr int kContinue = 75;
/// From rank 0's last word until the launcher is told to end, and between the steps of that: Open
/// MPI's waits two seconds for ranks that left without MPI_Finalize, and for ever for a lost host.
constexpr auto kPatience = 3s;
constexpr auto kBetweenTerms = 300ms;
constexpr auto kBeforeKill = 700ms;
/// After the launcher itself is gone, what its stderr may still hold.
constexpr auto kDrainPatience = 200ms;
/// … and how long its reader may take, once a signal has come.
constexpr auto kReaderPatience = 2s;
/// How long an unfinished line is kept back.
constexpr auto kQuiet = 1s;

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
    ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int fd() const { return fd_.get(); }
    const sigset_t& before() const { return before_; }
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

struct LaunchEnd {
    /// What rank 0 said; or 75 when it was there and is gone without a word, and 5 when it never
    /// was.
    int exit_code = 0;
    /// For people; empty when the run itself has said all there is to say.
    std::string problem;
};

/// Why the launcher is ended, when it does not end by itself.
enum class Ending {
    None,
    /// Rank 0 has ended.
    Over,
    /// Rank 0 did not begin in time.
    Late,
    /// Rank 0 has been silent for longer than it said that it would.
    Silent,
    /// A signal came before rank 0 had begun.
    Stopped,
};

class LauncherRun {
  public:
    LauncherRun(std::string name, LauncherChild child, Signals& signals, const std::string& token)
        : name_(std::move(name)),
          child_(std::move(child)),
          signals_(signals),
          token_(token),
          filter_(token) {}

    int run(Duration patience) {
        begin_by_ = Clock::now() + patience;
        while (!is_over()) {
            turn();
        }
        const LaunchEnd end = how_it_ended();
        errors_.show(filter_.flush());
        if (!end.problem.empty()) {
            errors_.show(fmt::format("muster: {}\n", end.problem));
        }
        while (!(output_.is_empty() && errors_.is_empty()) && !may_drop_output()) {
            turn();
        }
        LauncherChild::end_orphans();
        if (is_killed_) {
            child_.remove_session();
        }
        return end.exit_code;
    }

  private:
    void turn() {
        std::array<pollfd, 6> fds{{
            {signals_.fd(), POLLIN, 0},
            {child_.status() ? -1 : child_.fd(), POLLIN, 0},
            {output_.is_full() ? -1 : child_.output().get(), POLLIN, 0},
            {errors_.is_full() ? -1 : child_.errors().get(), POLLIN, 0},
            {output_.waits_for(), POLLOUT, 0},
            {errors_.waits_for(), POLLOUT, 0},
        }};
        const bool soon = ending_ != Ending::None || filter_.exit_code() || filter_.holds_back() ||
                          child_.status();
        const int ready = ::poll(fds.data(), fds.size(), soon ? 50 : 1'000);
        if (ready > 0 && fds[0].revents != 0) {
            while (const std::optional<int> number = signals_.next()) {
                on_signal(*number);
            }
        }
        if (ready > 0 && fds[2].revents != 0) {
            read(child_.output(), output_, [](std::string_view text) { return text; });
        }
        if (ready > 0 && fds[3].revents != 0) {
            heard_ = Clock::now();
            read(child_.errors(), errors_, [&](std::string_view text) {
                return filter_.take(text);
            });
        } else if (filter_.holds_back() && Clock::now() - heard_ > kQuiet) {
            errors_.show(filter_.flush());
        }
        if (ready > 0 && fds[1].revents != 0) {
            child_.reap();
            gone_at_ = Clock::now();
        }
        output_.write();
        errors_.write();
        look_for_an_end();
        take_end_step();
    }

    void on_signal(int number) {
        is_signalled_ = true;
        is_hurried_ = filter_.exit_code() || child_.status();
        if (number == SIGINT && ++interrupts_ > 2) {
            errors_.show("muster launch: ending the launcher\n");
            kill();
        } else if (!filter_.has_begun()) {
            // What has begun nothing has nothing to end cleanly.
            stopped_by_ = number;
            begin_to_end(Ending::Stopped, Clock::now());
        } else {
            child_.tell(signal_line(token_, number) + "\n");
        }
    }

    template <class Filter>
    static void read(UniqueFd& from, PatientOutput& to, Filter&& filter) {
        std::array<char, 16'384> bytes{};
        while (!to.is_full()) {
            const ssize_t size = ::read(from.get(), bytes.data(), bytes.size());
            if (size > 0) {
                to.show(filter(std::string_view(bytes.data(), static_cast<std::size_t>(size))));
            } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
                from.reset();
                return;
            } else {
                return;
            }
        }
    }

    void look_for_an_end() {
        const Clock::time_point now = Clock::now();
        if (const auto patience = filter_.take_patience()) {
            silent_at_ = now + *patience;
        }
        if (filter_.exit_code()) {
            begin_to_end(Ending::Over, now + kPatience);
            // What nobody reads yet, in a pager perhaps, must not be lost.
            if (ending_ == Ending::Over && end_steps_ == 0 && !is_hurried_ && !output_.is_empty()) {
                end_at_ = now + kPatience;
            }
        } else if (!filter_.has_begun() && now > begin_by_) {
            begin_to_end(Ending::Late, now);
        } else if (silent_at_ && now > *silent_at_ && !errors_.is_full()) {
            begin_to_end(Ending::Silent, now);
        }
    }

    void begin_to_end(Ending why, Clock::time_point at) {
        if (ending_ == Ending::None) {
            ending_ = why;
            end_at_ = at;
        }
    }

    /// The launcher may wait for a host that is gone, or never was there: mpirun ends at its second
    /// signal at the latest.
    void take_end_step() {
        if (ending_ == Ending::None || child_.status()) {
            return;
        }
        const Clock::duration late = Clock::now() - end_at_;
        if (end_steps_ == 0 && late >= 0s) {
            end_steps_ = 1;
            child_.signal(SIGTERM);
        } else if (end_steps_ == 1 && late >= kBetweenTerms) {
            end_steps_ = 2;
            child_.signal(SIGTERM);
        } else if (end_steps_ == 2 && late >= kBetweenTerms + kBeforeKill) {
            end_steps_ = 3;
            kill();
        }
    }

    void kill() {
        is_killed_ = true;
        child_.signal(SIGKILL);
    }

    bool is_over() {
        return child_.status() && (may_drop_output() || (!child_.output() && !child_.errors()) ||
                                   (!output_.is_full() && !errors_.is_full() &&
                                    Clock::now() - gone_at_ > kDrainPatience));
    }

    /// Whoever wants it to end does not want it to wait for a reader.
    bool may_drop_output() const {
        return child_.status() &&
               (is_hurried_ || (is_signalled_ && Clock::now() - gone_at_ > kReaderPatience));
    }

    LaunchEnd how_it_ended() const {
        if (filter_.exit_code()) {
            return {*filter_.exit_code(), ""};
        }
        switch (ending_) {
            case Ending::None:
            case Ending::Over:
                return gone_without_a_word();
            case Ending::Late:
                return {
                    kSystem,
                    fmt::format(
                        "muster did not begin in time: {} waits for a host that it can't reach, or "
                        "that can't reach this one (try --interface, or leave that host out; "
                        "--start-timeout says how long to wait)",
                        name_
                    )};
            case Ending::Silent:
                return {
                    kContinue,
                    "rank 0 is silent: its host is gone or can't be reached; what was reported is "
                    "kept, and the same command goes on"};
            case Ending::Stopped:
                return {
                    stopped_by_ == SIGINT ? kCancelled : kContinue,
                    fmt::format(
                        "ended by SIG{} before muster had begun on rank 0",
                        ::sigabbrev_np(stopped_by_)
                    )};
        }
        return {};
    }

    LaunchEnd gone_without_a_word() const {
        const int status = child_.status().value_or(0);
        const std::string how = WIFSIGNALED(status)
                                    ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                    : fmt::format("ended with code {}", WEXITSTATUS(status));
        if (filter_.has_begun()) {
            return {
                kContinue,
                fmt::format(
                    "rank 0 is gone without a word, and {} {}; what was reported is kept, and the "
                    "same command goes on",
                    name_,
                    how
                )};
        }
        return {kSystem, fmt::format("{} {} before muster began on rank 0", name_, how)};
    }

    std::string name_;
    LauncherChild child_;
    Signals& signals_;
    std::string token_;
    StderrFilter filter_;
    PatientOutput output_{STDOUT_FILENO};
    PatientOutput errors_{STDERR_FILENO};
    Clock::time_point heard_;
    Clock::time_point begin_by_;
    std::optional<Clock::time_point> silent_at_;
    Clock::time_point gone_at_;
    int interrupts_ = 0;
    int stopped_by_ = 0;
    bool is_signalled_ = false;
    /// A signal came when all was over but for output that nobody reads.
    bool is_hurried_ = false;

    Ending ending_ = Ending::None;
    /// When its first step is due; steps taken.
    Clock::time_point end_at_;
    int end_steps_ = 0;
    bool is_killed_ = false;
};

}  // namespace

std::string find_program(const std::string& name) {
    // Read before any other thread could change the environment.
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
    while (!rest.empty()) {
        const std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
        std::string candidate = fmt::format("{}/{}", folder, name);
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

Result<int>
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
    // What mpirun starts and leaves behind (ssh to a host that does not answer) comes to us.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Signals signals;
    Result<LauncherChild> child = LauncherChild::start(line, path, signals.before());
    if (!child) {
        return child.error();
    }
    return LauncherRun(line.front(), std::move(*child), signals, token).run(patience);
}

}  // namespace muster
