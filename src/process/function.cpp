// SPDX-License-Identifier: Apache-2.0
#include "process/function.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <typeinfo>

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process/files.hpp"

namespace muster {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr int kFirstOther = 3;

void flush_all() {
    std::cout.flush();
    std::cerr.flush();
    std::fflush(nullptr);
}

/// First in line at exit(): what the program wanted done at its own end is not for a trial to do.
void leave_at_once(int status, void* /*unused*/) {
    flush_all();
    ::_exit(status);
}

/// "std::runtime_error: no such file"
std::string name_of(const std::type_info& type) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free
    );
    return readable ? readable.get() : type.name();
}

template <class Number>
Number number_in(const char* name, Number fallback) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    Number number = fallback;
    if (text != nullptr) {
        std::from_chars(text, text + std::strlen(text), number);
    }
    return number;
}

/// OpenMP has read its variables long ago, when the program was loaded.
void tell_openmp() {
    void* found = ::dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (found != nullptr) {
        reinterpret_cast<void (*)(int)>(found)(std::max(1, number_in("OMP_NUM_THREADS", 1)));
    }
}

/// Becomes what exec would have made of this process.
void settle(const TrialFunction& function, const ChildRequest& request, pid_t parent) {
    if (request.is_terminal) {
        ::setsid();
        ::ioctl(request.stdout_fd, TIOCSCTTY, 0);
    } else {
        ::setpgid(0, 0);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    ::prctl(PR_SET_NAME, function.name.c_str());
    ::dup2(request.stdout_fd, STDOUT_FILENO);
    ::dup2(request.stderr_fd, STDERR_FILENO);
    ::close_range(kFirstOther, ~0U, 0);
    raise_oom_score();
    ::environ = const_cast<char**>(request.environment);
    ::on_exit(leave_at_once, nullptr);
    // What it prints is seen, and searched for metrics, line by line.
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    tell_openmp();
    std::srand(static_cast<unsigned>(number_in<std::uint64_t>("MUSTER_SEED", 1)));
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void say(const std::string& text, LastWords& last_words) {
    last_words.set(text);
    flush_all();
    std::fprintf(stderr, "muster: %s\n", text.c_str());
}

[[noreturn]] void run(const TrialFunction& function, LastWords& last_words) {
    int code = 1;
    try {
        function.run();
        code = 0;
    } catch (const std::exception& error) {
        say(fmt::format("{}: {}", name_of(typeid(error)), error.what()), last_words);
    } catch (...) {
        const std::type_info* type = abi::__cxa_current_exception_type();
        say("an exception of type " + (type != nullptr ? name_of(*type) : "unknown"), last_words);
    }
    flush_all();
    ::_exit(code);
}

}  // namespace

const TrialFunction* find_function(const TrialFunctions& functions, std::string_view name) {
    const auto found =
        std::find_if(functions.begin(), functions.end(), [&](const TrialFunction& one) {
            return one.name == name;
        });
    return found == functions.end() ? nullptr : &*found;
}

LastWords::LastWords() {
    void* page =
        ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page_ = page == MAP_FAILED ? nullptr : static_cast<char*>(page);
}

LastWords::~LastWords() {
    if (page_ != nullptr) {
        ::munmap(page_, kPageBytes);
    }
}

void LastWords::clear() {
    if (page_ != nullptr) {
        page_[0] = '\0';
    }
}

void LastWords::set(std::string_view text) {
    if (page_ != nullptr) {
        const std::size_t size = std::min(text.size(), kPageBytes - 1);
        std::memcpy(page_, text.data(), size);
        page_[size] = '\0';
    }
}

std::string LastWords::text() const {
    // The trial may have written anything there.
    return page_ == nullptr ? "" : std::string(page_, ::strnlen(page_, kPageBytes));
}

ChildStart
start_function(const TrialFunction& function, const ChildRequest& request, LastWords& last_words) {
    ChildStart start;
    // All that can fail does so here, where it can be told.
    if (!request.workdir.empty() && ::chdir(request.workdir.c_str()) != 0) {
        start.error_number = errno;
        start.error = fmt::format(
            "cannot enter the working directory '{}': {}; make it, or set 'workdir'",
            request.workdir,
            errno_text(start.error_number)
        );
        return start;
    }
    last_words.clear();
    const BoundMeanwhile bound(request.processing_units);
    start.binding_problem = bound.problem();
    const pid_t parent = ::getpid();
    start.pid = ::fork();
    if (start.pid == 0) {
        settle(function, request, parent);
        run(function, last_words);
    }
    if (start.pid < 0) {
        start.error_number = errno;
        start.error = fmt::format(
            "cannot start a process: {}; see 'ulimit -u' and the limits of the job",
            errno_text(start.error_number)
        );
        return start;
    }
    if (!request.is_terminal) {
        // Whoever is first: signals to the group are for it alone from now on.
        ::setpgid(start.pid, start.pid);
    }
    return start;
}

}  // namespace muster
