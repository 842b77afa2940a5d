// SPDX-License-Identifier: Apache-2.0

#include "runtime/owner_file.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/value.hpp"

#include "posix/unique_fd.hpp"
#include "runtime/host.hpp"

namespace muster {
namespace {

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Error system_error(const char* action, const std::string& path) {
    const std::string reason = std::generic_category().message(errno);
    return {ErrorCode::System, fmt::format("cannot {} {}: {}", action, path, reason)};
}

/// Makes `path` with `content`; false when it is there already.
Result<bool> make_file(const std::string& path, const std::string& content) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) {
        return errno == EEXIST ? Result<bool>(false) : system_error("make", path);
    }
    if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
        ::fsync(fd.get()) != 0) {
        const Error problem = system_error("write", path);
        ::unlink(path.c_str());
        return problem;
    }
    return true;
}

struct Owner {
    std::string host;
    std::int64_t pid = 0;
    std::int64_t started = 0;
};

std::optional<Owner> parse_owner(const std::string& content) {
    const Result<Value> json = value_from_json(content);
    const Value::Map* map = json.ok() ? json->as_map() : nullptr;
    if (map == nullptr) {
        return std::nullopt;
    }
    Owner owner;
    for (const ValueMember& member : *map) {
        const std::string* text = member.value.as_text();
        const std::int64_t* number = member.value.as_int();
        if (member.key == "host" && text != nullptr) {
            owner.host = *text;
        } else if (member.key == "pid" && number != nullptr) {
            owner.pid = *number;
        } else if (member.key == "started" && number != nullptr) {
            owner.started = *number;
        }
    }
    return owner;
}

/// How long ago the file was touched, by the clock that stamps files in its directory.
std::optional<std::int64_t> seconds_since_touched(const std::string& path) {
    const std::string probe = fmt::format("{}.{}.{}", path, host_name(), ::getpid());
    const UniqueFd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    struct stat now {};
    struct stat then {};
    const bool known = fd && ::write(fd.get(), "x", 1) == 1 && ::fsync(fd.get()) == 0 &&
                       ::fstat(fd.get(), &now) == 0 && ::stat(path.c_str(), &then) == 0;
    ::unlink(probe.c_str());
    return known ? std::optional<std::int64_t>(now.st_mtime - then.st_mtime) : std::nullopt;
}

/// Ok when whoever wrote `content` is gone.
Status check_gone(const std::string& path, const std::string& content) {
    const std::optional<Owner> owner = parse_owner(content);
    const std::int64_t silent = seconds_since_touched(path).value_or(0);
    const bool is_here = owner && owner->host == host_name();
    if (is_here) {
        const auto pid = static_cast<pid_t>(owner->pid);
        if (process_start_time(pid) != owner->started) {
            return Ok{};
        }
    } else if (silent > OwnerFile::kSilence.count()) {
        return Ok{};
    }
    return Error{
        ErrorCode::Conflict,
        fmt::format(
            "{} is held by another run: process {} on {}, last sign of life {} s ago",
            path.substr(0, path.rfind('/')),
            owner ? owner->pid : 0,
            owner ? owner->host : "an unknown host",
            silent
        )};
}

/// Takes the dead owner's file away, and only that one: another run may have been quicker.
Status remove_dead(const std::string& path, const std::string& content) {
    const std::string aside = fmt::format("{}.dead.{}.{}", path, host_name(), ::getpid());
    if (::rename(path.c_str(), aside.c_str()) != 0) {
        return errno == ENOENT ? Status(Ok{}) : system_error("move", path);
    }
    const bool was_dead = read_text(aside) == content;
    if (!was_dead) {
        // The quicker run's file: give it back. It can't have been made anew meanwhile, but if so
        // link() leaves that one alone.
        (void)!::link(aside.c_str(), path.c_str());
    }
    ::unlink(aside.c_str());
    return was_dead ? Status(Ok{})
                    : Error{ErrorCode::Conflict, path + " was taken by another run just now"};
}

}  // namespace

Result<OwnerFile> OwnerFile::take(const std::string& directory) {
    const std::string path = directory + "/owner";
    const std::string content = to_json(Value(Value::Map{
                                    {"host", host_name()},
                                    {"pid", Value(std::int64_t{::getpid()})},
                                    {"started", Value(process_start_time(::getpid()))}})) +
                                "\n";
    // The second time after a dead owner was cleared away; who is slower then finds the other's.
    for (int attempt = 0; attempt < 2; ++attempt) {
        const Result<bool> made = make_file(path, content);
        if (!made.ok()) {
            return made.error();
        }
        if (*made) {
            return OwnerFile(path, content);
        }
        const std::string found = read_text(path);
        Status cleared = check_gone(path, found);
        cleared = cleared.ok() ? remove_dead(path, found) : cleared;
        if (!cleared.ok()) {
            return cleared.error();
        }
    }
    return Error{ErrorCode::Conflict, path + " was taken by another run just now"};
}

OwnerFile::OwnerFile(OwnerFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      content_(std::move(other.content_)) {}

OwnerFile::~OwnerFile() {
    if (!path_.empty() && read_text(path_) == content_) {
        ::unlink(path_.c_str());
    }
}

Status OwnerFile::touch() const {
    const std::string directory = path_.substr(0, path_.rfind('/'));
    if (::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) != 0) {
        // Anything else is trouble of the storage, which may pass.
        const bool is_gone = errno == ENOENT || errno == ENOTDIR;
        return is_gone ? Error{ErrorCode::System,
                               directory + " was removed, or its file 'owner', while the experiment "
                                           "ran; what was reported since may be lost"}
                       : Status(Ok{});
    }
    const std::string found = read_text(path_);
    if (found.empty() || found == content_) {
        return Ok{};
    }
    const Owner other = parse_owner(found).value_or(Owner{});
    return Error{
        ErrorCode::System,
        fmt::format(
            "{} was taken over by another run (process {} on {}), since this one gave no sign of "
            "life for more than {} s",
            directory,
            other.pid,
            other.host,
            kSilence.count()
        )};
}

}  // namespace muster
