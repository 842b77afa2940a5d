// SPDX-License-Identifier: Apache-2.0

#include "runtime/host.hpp"

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace muster {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string node_name() {
    // Read before any other thread could change the environment.
    const char* slurm = std::getenv("SLURMD_NODENAME");  // NOLINT(concurrency-mt-unsafe)
    return slurm != nullptr && *slurm != '\0' ? slurm : host_name();
}

std::string scratch_directory() {
    // Read before any other thread could change the environment.
    const char* wanted = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    return wanted != nullptr && *wanted == '/' ? wanted : "/tmp";
}

std::string user_number() {
    return std::to_string(::geteuid());
}

std::int64_t process_start_time(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(file, line)) {
        return 0;
    }
    // The name, in parentheses, may hold anything; the state comes right behind it as field 3.
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    constexpr int kStartField = 22;
    std::istringstream rest(line.substr(name_end + 1));
    std::string state;
    rest >> state;
    std::string field;
    for (int index = 4; index < kStartField; ++index) {
        rest >> field;
    }
    std::int64_t started = 0;
    rest >> started;
    return state == "Z" || state == "X" ? 0 : started;
}

Duration monotonic_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

std::string program_directory() {
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? std::string() : program.parent_path().string();
}

}  // namespace muster
