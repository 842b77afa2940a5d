// SPDX-License-Identifier: Apache-2.0
//
// trial_files - moves a directory to where checkpoints are kept and makes it durable. Included by
// muster/trial.hpp.
//
// Header only, standard library and POSIX only. Nothing here throws; what went wrong is a text.

#pragma once

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::trial::detail {

/// "cannot <what> '<path>': <the system's reason>".
inline std::string
file_problem(const std::string& what, const std::string& path, const std::error_code& reason) {
    return "cannot " + what + " '" + path + "': " + reason.message();
}

inline std::error_code last_error() {
    return {errno, std::generic_category()};
}

/// Whether the system may refuse to sync it for what it is, not for what became of its content.
inline bool is_unsyncable(int error_number) {
    return error_number == EINVAL || error_number == EROFS || error_number == ENOTSUP;
}

/// Syncs one file or directory. Empty, or what went wrong.
inline std::string sync_one(const std::string& path, bool is_directory) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return file_problem("open", path, last_error());
    }
    std::string problem;
    if (::fsync(fd) != 0 && !(is_directory && is_unsyncable(errno))) {
        problem = file_problem("sync", path, last_error());
    }
    ::close(fd);
    return problem;
}

/// Syncs every file and directory in `root` and `root` itself. Empty, or what went wrong.
inline std::string sync_tree(const std::string& root) {
    std::error_code failed;
    std::filesystem::recursive_directory_iterator entry(root, failed);
    const std::filesystem::recursive_directory_iterator end;
    while (!failed && entry != end) {
        const std::filesystem::file_type type = entry->symlink_status(failed).type();
        const bool is_directory = type == std::filesystem::file_type::directory;
        if (is_directory || type == std::filesystem::file_type::regular) {
            std::string problem = sync_one(entry->path().string(), is_directory);
            if (!problem.empty()) {
                return problem;
            }
        }
        entry.increment(failed);
    }
    return failed ? file_problem("read", root, failed) : sync_one(root, true);
}

/// A directory on its way to where checkpoints are. Unless it was kept, it goes back.
class MovedDirectory {
  public:
    MovedDirectory(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
    ~MovedDirectory() { take_back(); }
    MovedDirectory(const MovedDirectory&) = delete;
    MovedDirectory& operator=(const MovedDirectory&) = delete;

    /// Renames it; across file systems it is copied, and stays until kept(). Empty, or why not.
    std::string move() {
        if (::rename(from_.c_str(), to_.c_str()) == 0) {
            state_ = State::Renamed;
            return "";
        }
        if (errno != EXDEV) {
            return file_problem("move to '" + to_ + "' from", from_, last_error());
        }
        state_ = State::Copied;
        std::error_code failed;
        using std::filesystem::copy_options;
        std::filesystem::copy(
            from_, to_, copy_options::recursive | copy_options::copy_symlinks, failed
        );
        return failed ? file_problem("copy to '" + to_ + "' from", from_, failed) : "";
    }

    /// It has another name by now.
    void kept() {
        std::error_code ignored;
        if (state_ == State::Copied) {
            std::filesystem::remove_all(from_, ignored);
        }
        state_ = State::Untouched;
    }

  private:
    enum class State { Untouched, Renamed, Copied };

    void take_back() {
        std::error_code ignored;
        if (state_ == State::Renamed) {
            ::rename(to_.c_str(), from_.c_str());
        } else if (state_ == State::Copied) {
            std::filesystem::remove_all(to_, ignored);
        }
    }

    std::string from_;
    std::string to_;
    State state_ = State::Untouched;
};

/// Makes `path` and what is missing above it, for this user alone. Empty, or what went wrong.
inline std::string make_private_directories(const std::string& path) {
    std::error_code failed;
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
            // What is above may be of others, or on a file system that can only be read.
            failed = last_error();
        } else {
            failed.clear();
        }
        if (end == std::string::npos) {
            return failed ? file_problem("make the directory", path, failed) : "";
        }
    }
}

}  // namespace muster::trial::detail
