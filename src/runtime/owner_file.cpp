// SPDX-License-Identifier: Apache-2.0

#include "runtime/owner_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/value.hpp"

#include "posix/unique_fd.hpp"
#include "process/environment.hpp"
#include "runtime/host.hpp"
#include "slurm/job.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// A claim is held for some milliseconds; who finds his own older than this was stopped meanwhile
/// and must not act on it any more.
constexpr std::chrono::seconds kClaimLasts{20};
/// What nobody can be about any more.
constexpr std::int64_t kLitterSeconds = 3600;
/// Owners that die one after the other while somebody takes over.
constexpr int kMostTurns = 32;

Error system_error(const char* action, const std::string& path, int error) {
    const std::string reason = std::generic_category().message(error);
    return {ErrorCode::System, fmt::format("cannot {} {}: {}", action, path, reason)};
}

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string new_id() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

std::string to_text(const RunIdentity& who) {
    return to_json(Value(Value::Map{
               {"id", who.id},
               {"host", who.host},
               {"boot", who.boot},
               {"pid_space", who.pid_space},
               {"pid", Value(who.pid)},
               {"started", Value(who.started)},
               {"since", Value(who.since)},
               {"spawner", Value(who.spawner)},
               {"spawner_started", Value(who.spawner_started)},
               {"job", who.job},
               {"restarts", Value(who.restarts)}})) +
           "\n";
}

/// What is missing stays as it is: earlier versions wrote less, and a torn file has nothing.
RunIdentity identity_of(const std::string& text) {
    RunIdentity who;
    const Result<Value> json = value_from_json(text);
    const Value::Map* map = json.ok() ? json->as_map() : nullptr;
    if (map == nullptr) {
        return who;
    }
    const std::array<std::pair<const char*, std::string*>, 5> texts{
        {{"id", &who.id},
         {"host", &who.host},
         {"boot", &who.boot},
         {"pid_space", &who.pid_space},
         {"job", &who.job}}};
    const std::array<std::pair<const char*, std::int64_t*>, 6> numbers{
        {{"pid", &who.pid},
         {"started", &who.started},
         {"since", &who.since},
         {"spawner", &who.spawner},
         {"spawner_started", &who.spawner_started},
         {"restarts", &who.restarts}}};
    for (const ValueMember& member : *map) {
        for (const auto& field : texts) {
            if (member.key == field.first && member.value.as_text() != nullptr) {
                *field.second = *member.value.as_text();
            }
        }
        for (const auto& field : numbers) {
            if (member.key == field.first && member.value.as_int() != nullptr) {
                *field.second = *member.value.as_int();
            }
        }
    }
    return who;
}

/// A file with who has, or claims, something.
struct Mark {
    RunIdentity who;
    /// The name for claims on it.
    std::string id;
    struct timespec touched {};
};

/// Reads it through a descriptor, which makes a network file system ask its server.
Result<std::optional<Mark>> read_mark(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        const bool is_none = errno == ENOENT || errno == ESTALE;
        return is_none ? Result<std::optional<Mark>>(std::optional<Mark>())
                       : system_error("read", path, errno);
    }
    std::array<char, 4096> text{};
    struct stat status {};
    const ssize_t size = ::read(fd.get(), text.data(), text.size());
    if (size < 0 || ::fstat(fd.get(), &status) != 0) {
        return errno == ESTALE ? Result<std::optional<Mark>>(std::optional<Mark>())
                               : system_error("read", path, errno);
    }
    Mark mark;
    const std::string content(text.data(), static_cast<std::size_t>(size));
    mark.who = identity_of(content);
    // Of an earlier version, or torn: what it says, and who it is on the disk, is its name.
    mark.id = !mark.who.id.empty()
                  ? mark.who.id
                  : fmt::format("{:x}-{:x}", status.st_ino, std::hash<std::string>{}(content));
    mark.touched = status.st_mtim;
    return std::optional<Mark>(std::move(mark));
}

/// The time by the clock that stamps files in the directory of `path`.
Result<struct timespec> time_of_server(const std::string& path) {
    const std::string probe = fmt::format("{}.time-{}", path, new_id());
    const UniqueFd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    struct stat now {};
    const bool known = fd && ::write(fd.get(), "x", 1) == 1 && ::fsync(fd.get()) == 0 &&
                       ::fstat(fd.get(), &now) == 0;
    const int error = errno;
    ::unlink(probe.c_str());
    return known ? Result<struct timespec>(now.st_mtim) : system_error("write", probe, error);
}

/// A file of our own with `text`, to be given its name at once and whole.
class Draft {
  public:
    Draft(std::string path, const std::string& text) : path_(std::move(path)) {
        const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        const auto size = static_cast<ssize_t>(text.size());
        written_ =
            fd && ::write(fd.get(), text.data(), text.size()) == size && ::fsync(fd.get()) == 0;
        error_ = errno;
    }
    ~Draft() { ::unlink(path_.c_str()); }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    Status status() const { return written_ ? Status(Ok{}) : system_error("write", path_, error_); }

    /// False when `name` is there already.
    Result<bool> link_to(const std::string& name) const {
        if (::link(path_.c_str(), name.c_str()) == 0) {
            return true;
        }
        const int error = errno;
        struct stat status {};
        if (::stat(path_.c_str(), &status) == 0 && status.st_nlink == 2) {
            // The file server did it, and its answer was lost on the way.
            return true;
        }
        if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK) {
            return copy_to(name);
        }
        return error == EEXIST ? Result<bool>(false) : system_error("make", name, error);
    }

    /// Takes the place of `name`.
    Status rename_to(const std::string& name) const {
        const bool moved = ::rename(path_.c_str(), name.c_str()) == 0;
        return moved ? Status(Ok{}) : system_error("replace", name, errno);
    }

  private:
    /// Where there are no links; then a file is made exclusively, and filled a moment later.
    Result<bool> copy_to(const std::string& name) const {
        const UniqueFd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!fd) {
            return errno == EEXIST ? Result<bool>(false) : system_error("make", name, errno);
        }
        const std::string text = first_line(path_) + "\n";
        const auto size = static_cast<ssize_t>(text.size());
        if (::write(fd.get(), text.data(), text.size()) != size || ::fsync(fd.get()) != 0) {
            const int error = errno;
            ::unlink(name.c_str());
            return system_error("write", name, error);
        }
        return true;
    }

    std::string path_;
    bool written_ = false;
    int error_ = 0;
};

/// One that tries to become the owner.
class Taking {
  public:
    using Outcome = Result<std::variant<OwnerFile, Holder>>;

    Taking(std::string path, pid_t spawner)
        : path_(std::move(path)),
          self_(own_identity(spawner)),
          draft_(fmt::format("{}.new-{}", path_, self_.id), to_text(self_)) {}

    const RunIdentity& self() const { return self_; }

    /// Nothing: the owner has changed meanwhile, look again.
    Result<std::optional<Holder>> try_once(std::optional<Predecessor>& predecessor, bool& taken) {
        if (Status drafted = draft_.status(); !drafted.ok()) {
            return drafted.error();
        }
        Result<bool> made = draft_.link_to(path_);
        if (!made.ok()) {
            return made.error();
        }
        taken = *made;
        if (taken) {
            return std::optional<Holder>();
        }
        Result<std::optional<Mark>> found = read_mark(path_);
        if (!found.ok()) {
            return found.error();
        }
        if (!*found) {
            return std::optional<Holder>();
        }
        Result<std::optional<Holder>> living = check(**found);
        if (!living.ok() || *living) {
            return living;
        }
        predecessor = Predecessor{(*found)->who, silent_};
        return succeed(**found, taken);
    }

  private:
    /// Nothing when whoever left the mark is dead; silent_ is how long it has been silent.
    Result<std::optional<Holder>> check(const Mark& mark) {
        const Result<struct timespec> now = time_of_server(path_);
        if (!now.ok()) {
            return now.error();
        }
        silent_ =
            std::chrono::seconds{std::max<std::int64_t>(now->tv_sec - mark.touched.tv_sec, 0)};
        Holder holder;
        holder.who = mark.who;
        holder.silent = silent_;
        holder.stamp = mark.touched.tv_sec * 1'000'000'000 + mark.touched.tv_nsec;
        const bool is_here = is_on_this_host(mark.who);
        holder.state = is_here ? Holder::State::Living : Holder::State::Unknown;
        const bool is_dead =
            is_here ? !lives(mark.who.pid, mark.who.started) : silent_ > OwnerFile::kSilence;
        return is_dead ? std::optional<Holder>() : std::optional<Holder>(holder);
    }

    /// Replaces the dead `owner`, or says who is about it.
    Result<std::optional<Holder>> succeed(const Mark& owner, bool& taken) {
        const std::chrono::seconds silent = silent_;
        std::string claim;
        std::string id = owner.id;
        for (int turn = 0; turn < kMostTurns; ++turn) {
            claim = fmt::format("{}.after-{}", path_, id);
            const Duration begin = monotonic_now();
            const Result<bool> mine = draft_.link_to(claim);
            if (!mine.ok()) {
                return mine.error();
            }
            if (*mine) {
                silent_ = silent;
                return replace(owner, claim, begin, taken);
            }
            const Result<std::optional<Mark>> other = read_mark(claim);
            if (!other.ok()) {
                return other.error();
            }
            if (!*other) {
                return std::optional<Holder>();
            }
            Result<std::optional<Holder>> living = check(**other);
            if (!living.ok() || *living) {
                return living;
            }
            id = (*other)->id;
        }
        return std::optional<Holder>();
    }

    /// With the claim in hand.
    Result<std::optional<Holder>>
    replace(const Mark& owner, const std::string& claim, Duration begin, bool& taken) {
        const Result<std::optional<Mark>> found = read_mark(path_);
        const bool unchanged = found.ok() && *found && (*found)->id == owner.id;
        if (!unchanged || monotonic_now() - begin > kClaimLasts) {
            ::unlink(claim.c_str());
            return found.ok() ? Result<std::optional<Holder>>(std::optional<Holder>())
                              : found.error();
        }
        // Another name of the draft is not enough: renaming one file over itself does nothing.
        const Draft heir(fmt::format("{}.heir-{}", path_, self_.id), to_text(self_));
        Status replaced = heir.status();
        replaced = replaced.ok() ? heir.rename_to(path_) : replaced;
        taken = replaced.ok();
        ::unlink(claim.c_str());
        return taken ? Result<std::optional<Holder>>(std::optional<Holder>()) : replaced.error();
    }

    std::string path_;
    RunIdentity self_;
    Draft draft_;
    std::chrono::seconds silent_{0};
};

/// What those who died in the middle of taking over have left.
void sweep(const std::string& path) {
    const Result<struct timespec> now = time_of_server(path);
    std::error_code failed;
    const std::string prefix = fs::path(path).filename().string() + ".";
    for (fs::directory_iterator entry(fs::path(path).parent_path(), failed), end;
         !failed && entry != end;
         entry.increment(failed)) {
        struct stat status {};
        const std::string& name = entry->path().native();
        if (entry->path().filename().native().starts_with(prefix) && now.ok() &&
            ::stat(name.c_str(), &status) == 0 && now->tv_sec - status.st_mtime > kLitterSeconds) {
            ::unlink(name.c_str());
        }
    }
}

}  // namespace

RunIdentity own_identity(pid_t spawner) {
    RunIdentity self;
    self.id = new_id();
    self.host = host_name();
    self.boot = first_line("/proc/sys/kernel/random/boot_id");
    std::error_code failed;
    self.pid_space = fs::read_symlink("/proc/self/ns/pid", failed).string();
    self.pid = ::getpid();
    self.started = process_start_time(::getpid());
    self.since = ::time(nullptr);
    self.spawner = spawner;
    self.spawner_started = spawner > 0 ? process_start_time(spawner) : 0;
    if (const std::optional<SlurmJob> job = slurm_job_of(current_environment())) {
        self.job = job->id;
        self.restarts = job->restarts;
    }
    return self;
}

bool is_of_earlier_incarnation(const RunIdentity& who) {
    const std::optional<SlurmJob> job = slurm_job_of(current_environment());
    return job && job->id == who.job && who.restarts < job->restarts;
}

bool is_on_this_host(const RunIdentity& who) {
    std::error_code failed;
    return who.host == host_name() && who.boot == first_line("/proc/sys/kernel/random/boot_id") &&
           who.pid_space == fs::read_symlink("/proc/self/ns/pid", failed).string();
}

bool lives(std::int64_t pid, std::int64_t started) {
    return pid > 0 && started > 0 && process_start_time(static_cast<pid_t>(pid)) == started;
}

Result<std::variant<OwnerFile, Holder>>
OwnerFile::take(const std::string& directory, pid_t spawner) {
    using Outcome = std::variant<OwnerFile, Holder>;
    const std::string path = directory + "/owner";
    Taking taking(path, spawner);
    for (int turn = 0; turn < kMostTurns; ++turn) {
        std::optional<Predecessor> predecessor;
        bool taken = false;
        Result<std::optional<Holder>> holder = taking.try_once(predecessor, taken);
        if (!holder.ok()) {
            return holder.error();
        }
        if (*holder) {
            return Outcome(std::move(**holder));
        }
        if (taken) {
            sweep(path);
            return Outcome(OwnerFile(path, taking.self(), std::move(predecessor)));
        }
    }
    return Error{ErrorCode::System, path + " changes hands all the time; try again"};
}

OwnerFile::OwnerFile(OwnerFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      self_(std::move(other.self_)),
      predecessor_(std::move(other.predecessor_)) {}

OwnerFile::~OwnerFile() {
    if (path_.empty()) {
        return;
    }
    const Result<std::optional<Mark>> found = read_mark(path_);
    if (found.ok() && *found && (*found)->id == self_.id) {
        ::unlink(path_.c_str());
    }
}

Status OwnerFile::touch() const {
    if (::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) != 0) {
        const int error = errno;
        struct stat status {};
        if (error != ENOENT || ::stat(path_.substr(0, path_.rfind('/')).c_str(), &status) != 0) {
            return system_error("touch", path_, error);
        }
        const Draft draft(fmt::format("{}.new-{}", path_, self_.id), to_text(self_));
        const Status drafted = draft.status();
        const Result<bool> made = drafted.ok() ? draft.link_to(path_) : drafted.error();
        if (!made.ok()) {
            return made.error();
        }
    }
    const Result<std::optional<Mark>> found = read_mark(path_);
    if (!found.ok()) {
        return found.error();
    }
    if (!*found) {
        return system_error("touch", path_, ENOENT);
    }
    const RunIdentity& other = (*found)->who;
    if ((*found)->id == self_.id || other.pid == 0) {
        return Ok{};
    }
    return Error{
        ErrorCode::Conflict,
        fmt::format(
            "{} was taken over by another run (process {} on {}), since this one gave no sign of "
            "life for more than {} s",
            path_.substr(0, path_.rfind('/')),
            other.pid,
            other.host,
            kSilence.count()
        )};
}

}  // namespace muster
