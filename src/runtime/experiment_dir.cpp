// SPDX-License-Identifier: Apache-2.0

#include "runtime/experiment_dir.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/reader.hpp"
#include "posix/unique_fd.hpp"
#include "spec/load_spec.hpp"
#include "spec/resolved_spec.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

Error failed_to(std::string_view action, const std::string& path, int error) {
    const std::string reason = std::generic_category().message(error);
    return {ErrorCode::System, fmt::format("cannot {} {}: {}", action, path, reason)};
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

/// Whether any trial was created: one that was refused as infeasible binds nobody to its spec.
/// Where the journal can't be read, there may have been.
bool has_trials(const ExperimentDir& directory) {
    bool found = false;
    const Result<JournalReading> reading =
        read_journal(directory.journal(), [&found](const Fact& fact, TimePoint) {
            found = found || std::holds_alternative<TrialCreated>(fact) ||
                    std::holds_alternative<TrialCondensed>(fact);
        });
    return found || !reading.ok() || reading->damaged > 0 || reading->missing > 0;
}

}  // namespace

Result<ExperimentDir> prepare_experiment_dir(const ExperimentSpec& spec, bool fresh) {
    if (spec.name.empty() || spec.name == "." || spec.name == ".." ||
        spec.name.find('/') != std::string::npos) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("name: \"{}\" can't be the name of a directory", spec.name)};
    }
    std::error_code error;
    const fs::path storage = fs::absolute(spec.storage_path, error).lexically_normal();
    fs::create_directories(storage, error);
    if (error) {
        return failed_to("make the directory", storage.string(), error.value());
    }
    for (int number = 1;; ++number) {
        ExperimentDir directory;
        directory.name = number == 1 ? spec.name : fmt::format("{}-{}", spec.name, number);
        directory.path = (storage / directory.name).string();
        if (::mkdir(directory.path.c_str(), 0700) == 0) {
            return directory;
        }
        if (errno != EEXIST || !fs::is_directory(directory.path, error)) {
            return failed_to("make the directory", directory.path, errno);
        }
        if (!fresh) {
            directory.has_journal = has_journal(directory.journal());
            return directory;
        }
    }
}

Status check_continues(const ExperimentDir& directory, const ExperimentSpec& spec) {
    const Result<ExperimentSpec> before = load_spec(directory.spec_file());
    if (!before.ok()) {
        return before.error();
    }
    const Status same = compare_for_continue(*before, spec);
    if (same.ok() || !has_trials(directory)) {
        return Ok{};
    }
    return Error{
        same.error().code,
        fmt::format(
            "{} was begun with another spec: {}; give it another name, or begin anew with --fresh",
            directory.path,
            same.error().message
        )};
}

Status replace_file(const std::string& path, const std::string& content, bool durable) {
    const std::string aside = path + ".new";
    UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd || !write_all(fd.get(), content) || (durable && ::fsync(fd.get()) != 0) ||
        ::rename(aside.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(aside.c_str());
        return failed_to("write", path, error);
    }
    return Ok{};
}

}  // namespace muster
