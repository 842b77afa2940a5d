// SPDX-License-Identifier: Apache-2.0
#include "process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"
#include "process/files.hpp"
#include "process/process_tree.hpp"

namespace muster {
namespace {

constexpr char kOomScore[] = "500";
constexpr std::size_t kStackBytes = std::size_t{64} * 1024;

/// A set of CPUs of any size, as the kernel takes it.
class CpuMask {
  public:
    explicit CpuMask(const std::vector<std::uint32_t>& units) {
        for (const std::uint32_t unit : units) {
            const std::size_t word = unit / kWordBits;
            if (words_.size() <= word) {
                words_.resize(word + 1);
            }
            words_[word] |= 1UL << (unit % kWordBits);
        }
    }
    explicit CpuMask(std::size_t words) : words_(words) {}

    bool empty() const { return words_.empty(); }
    std::size_t bytes() const { return words_.size() * sizeof(unsigned long); }
    cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
    const cpu_set_t* set() const { return reinterpret_cast<const cpu_set_t*>(words_.data()); }

    std::vector<std::uint32_t> units() const {
        std::vector<std::uint32_t> units;
        for (std::uint32_t unit = 0; unit < words_.size() * kWordBits; ++unit) {
            if ((words_[unit / kWordBits] >> (unit % kWordBits) & 1UL) != 0) {
                units.push_back(unit);
            }
        }
        return units;
    }

  private:
    static constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
    std::vector<unsigned long> words_;
};

enum class Stage { Workdir, Exec };

/// Everything that the new process touches, prepared by the old one.
struct Shared {
    std::vector<char*> argv;
    /// For a script without "#!": /bin/sh and the script before the arguments.
    std::vector<char*> shell_argv;
    char* const* environment = nullptr;
    const char* workdir = nullptr;
    std::vector<const char*> candidates;
    const CpuMask* mask = nullptr;
    int stdout_fd = -1;
    int stderr_fd = -1;
    bool is_terminal = false;
    pid_t parent = -1;
    // Answers.
    Stage stage = Stage::Exec;
    int error_number = 0;
    int affinity_error = 0;
};

/// Tries each place where the program may be. Leaves the errno that says most.
void exec_first(Shared& shared) {
    int seen = ENOENT;
    for (const char* candidate : shared.candidates) {
        ::execve(candidate, shared.argv.data(), shared.environment);
        if (errno == ENOEXEC) {
            shared.shell_argv[1] = const_cast<char*>(candidate);
            ::execve("/bin/sh", shared.shell_argv.data(), shared.environment);
        }
        if (errno != ENOENT && errno != ENOTDIR) {
            seen = errno;
        }
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
            break;
        }
    }
    shared.error_number = seen;
}

int run_child(void* argument) {
    Shared& shared = *static_cast<Shared*>(argument);
    if (shared.is_terminal) {
        ::setsid();
        ::ioctl(shared.stdout_fd, TIOCSCTTY, 0);
    } else {
        ::setpgid(0, 0);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != shared.parent) {
        ::_exit(127);
    }
    ::dup2(shared.stdout_fd, STDOUT_FILENO);
    ::dup2(shared.stderr_fd, STDERR_FILENO);
    raise_oom_score();
    if (!shared.mask->empty() &&
        ::sched_setaffinity(0, shared.mask->bytes(), shared.mask->set()) != 0) {
        shared.affinity_error = errno;
    }
    if (shared.workdir != nullptr && ::chdir(shared.workdir) != 0) {
        shared.stage = Stage::Workdir;
        shared.error_number = errno;
        ::_exit(127);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    exec_first(shared);
    ::_exit(127);
}

std::string path_of(const char* const* environment) {
    for (const char* const* entry = environment; *entry != nullptr; ++entry) {
        if (std::strncmp(*entry, "PATH=", 5) == 0) {
            return *entry + 5;
        }
    }
    return "/usr/local/bin:/usr/bin:/bin";
}

/// Where a program may be, in the order in which to try.
std::vector<std::string> places_of(const std::string& program, const std::string& path) {
    if (program.find('/') != std::string::npos) {
        return {program};
    }
    std::vector<std::string> places;
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t colon = std::min(path.find(':', at), path.size());
        const std::string directory = path.substr(at, colon - at);
        places.push_back(fmt::format("{}/{}", directory.empty() ? "." : directory, program));
        at = colon + 1;
    }
    return places;
}

std::string explain_failure(const Shared& shared, const ChildRequest& request) {
    const int error_number = shared.error_number;
    if (shared.stage == Stage::Workdir) {
        return fmt::format(
            "cannot enter the working directory '{}': {}; make it, or set 'workdir'",
            request.workdir,
            errno_text(error_number)
        );
    }
    const std::string& program = request.argv.front();
    const bool searched = program.find('/') == std::string::npos;
    if (error_number == ENOENT && searched) {
        return fmt::format(
            "cannot run '{}': not found on PATH ({}); write its whole path, or set PATH in 'env'",
            program,
            path_of(request.environment)
        );
    }
    if (error_number == ENOENT) {
        return fmt::format(
            "cannot run '{}': no such file, seen from '{}'; or the interpreter that it names on "
            "its "
            "first line is missing",
            program,
            request.workdir
        );
    }
    if (error_number == EACCES) {
        return fmt::format("cannot run '{}': not executable; try chmod +x", program);
    }
    if (error_number == E2BIG) {
        return fmt::format(
            "cannot run '{}': its arguments and environment are too long for the system (one of "
            "them at most 128 KiB); pass big values in a file, MUSTER_CONFIG has them all",
            program
        );
    }
    return fmt::format("cannot run '{}': {}", program, errno_text(error_number));
}

/// The hardware threads that a process may run on; nothing when that can't be told.
std::vector<std::uint32_t> binding_of(pid_t pid) {
    // Masks are as long as the kernel's own, whatever the highest CPU is.
    CpuMask actual(std::size_t{128});
    return ::sched_getaffinity(pid, actual.bytes(), actual.set()) == 0
               ? actual.units()
               : std::vector<std::uint32_t>{};
}

std::string binding_text(const std::vector<std::uint32_t>& wanted, const std::string& found) {
    return fmt::format("asked to run on CPUs {}, {}", fmt::join(wanted, ","), found);
}

/// Reads the binding of a process back, which setting it has left with this errno.
std::string check_binding(pid_t pid, std::vector<std::uint32_t> wanted, int affinity_error) {
    if (affinity_error != 0) {
        return binding_text(wanted, "which the system refused: " + errno_text(affinity_error));
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    const std::vector<std::uint32_t> found = binding_of(pid);
    if (wanted == found || found.empty()) {
        return {};
    }
    return binding_text(wanted, fmt::format("but runs on {}", fmt::join(found, ",")));
}

}  // namespace

void raise_oom_score() {
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        // Failing leaves the trial no worse off than before; there is nobody to tell.
        [[maybe_unused]] const ssize_t wrote = ::write(fd, kOomScore, sizeof kOomScore - 1);
        ::close(fd);
    }
}

BoundMeanwhile::BoundMeanwhile(const std::vector<std::uint32_t>& processing_units) {
    if (processing_units.empty()) {
        return;
    }
    before_ = binding_of(0);
    const CpuMask mask(processing_units);
    const bool set = ::sched_setaffinity(0, mask.bytes(), mask.set()) == 0;
    problem_ = check_binding(0, processing_units, set ? 0 : errno);
}

BoundMeanwhile::~BoundMeanwhile() {
    if (!before_.empty()) {
        const CpuMask mask(before_);
        // What may run on these now ran on them before.
        ::sched_setaffinity(0, mask.bytes(), mask.set());
    }
}

ChildStart start_child(const ChildRequest& request) {
    const std::vector<std::string> places =
        places_of(request.argv.front(), path_of(request.environment));
    const CpuMask mask(request.processing_units);
    std::string shell = "/bin/sh";
    Shared shared;
    for (const std::string& argument : request.argv) {
        shared.argv.push_back(const_cast<char*>(argument.c_str()));
    }
    shared.argv.push_back(nullptr);
    shared.shell_argv = {shell.data(), nullptr};
    shared.shell_argv.insert(shared.shell_argv.end(), shared.argv.begin() + 1, shared.argv.end());
    for (const std::string& place : places) {
        shared.candidates.push_back(place.c_str());
    }
    shared.environment = const_cast<char* const*>(request.environment);
    shared.workdir = request.workdir.empty() ? nullptr : request.workdir.c_str();
    shared.mask = &mask;
    shared.stdout_fd = request.stdout_fd;
    shared.stderr_fd = request.stderr_fd;
    shared.is_terminal = request.is_terminal;
    shared.parent = ::getpid();

    alignas(64) static char stack[kStackBytes];
    ChildStart start;
    start.pid = ::clone(run_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &shared);
    if (start.pid < 0) {
        start.error_number = errno;
        start.error = fmt::format(
            "cannot start a process: {}; see 'ulimit -u' and the limits of the job",
            errno_text(start.error_number)
        );
        return start;
    }
    if (shared.error_number != 0) {
        start.error_number = shared.error_number;
        start.error = explain_failure(shared, request);
        // It is on its way out already; nobody else must see it end.
        while (::waitpid(start.pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        start.pid = -1;
        return start;
    }
    if (!request.processing_units.empty()) {
        start.binding_problem =
            check_binding(start.pid, request.processing_units, shared.affinity_error);
    }
    return start;
}

std::string
bind_processes(const std::vector<pid_t>& pids, const std::vector<std::uint32_t>& processing_units) {
    const CpuMask mask(processing_units);
    std::string problem;
    for (const pid_t pid : pids) {
        for (const pid_t thread : threads_of(pid)) {
            // ESRCH: it ended meanwhile.
            if (::sched_setaffinity(thread, mask.bytes(), mask.set()) != 0 && errno != ESRCH) {
                problem = binding_text(
                    processing_units, "which the system refused: " + errno_text(errno)
                );
            }
        }
    }
    return problem;
}

}  // namespace muster
