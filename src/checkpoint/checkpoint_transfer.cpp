// SPDX-License-Identifier: Apache-2.0

#include "checkpoint/checkpoint_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/trial_files.hpp"

#include "base/overloaded.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "posix/unique_fd.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// For what an entry's fixed parts take in an answer.
constexpr std::size_t kEntryOverhead = 64;

/// Everything in `root`, sorted: a directory comes before what is in it.
Result<std::vector<std::string>> paths_in(const std::string& root) {
    std::vector<std::string> paths;
    std::error_code failed;
    fs::recursive_directory_iterator entry(root, failed);
    while (!failed && entry != fs::recursive_directory_iterator()) {
        paths.push_back(entry->path().string().substr(root.size() + 1));
        entry.increment(failed);
    }
    if (failed) {
        return file_error("read", root, failed.value());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

Result<CheckpointEntry> describe(const std::string& root, const std::string& path) {
    constexpr mode_t kModeBits = 07777;
    const std::string whole = root + "/" + path;
    struct stat status {};
    if (::lstat(whole.c_str(), &status) != 0) {
        return file_error("read", whole, errno);
    }
    CheckpointEntry entry{.path = path, .target = "", .mode = status.st_mode & kModeBits};
    if (S_ISDIR(status.st_mode)) {
        entry.kind = CheckpointEntry::Kind::Directory;
    } else if (S_ISLNK(status.st_mode)) {
        std::error_code failed;
        entry.kind = CheckpointEntry::Kind::Link;
        entry.target = fs::read_symlink(whole, failed).string();
    } else if (S_ISREG(status.st_mode)) {
        entry.bytes = status.st_size;
    } else {
        return Error{ErrorCode::System, fmt::format("'{}' is no file that can be moved", whole)};
    }
    return entry;
}

Result<Entries> list(const std::string& root, const AskEntries& asked) {
    const Result<std::vector<std::string>> paths = paths_in(root);
    if (!paths) {
        return paths.error();
    }
    Entries answer{asked.key, {}, true};
    std::size_t size = 0;
    for (std::size_t index = asked.skip; index < paths->size(); ++index) {
        Result<CheckpointEntry> entry = describe(root, (*paths)[index]);
        if (!entry) {
            return entry.error();
        }
        size += entry->path.size() + entry->target.size() + kEntryOverhead;
        if (size > kFetchBytes && !answer.entries.empty()) {
            answer.last = false;
            break;
        }
        answer.entries.push_back(std::move(entry).value());
    }
    return answer;
}

Status read_piece(const std::string& root, const FilePiece& piece, std::string& out) {
    const std::string path = root + "/" + piece.path;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        return file_error("open", path, errno);
    }
    const std::size_t begin = out.size();
    const auto wanted = static_cast<std::size_t>(piece.bytes);
    out.resize(begin + wanted);
    std::size_t got = 0;
    while (got < wanted) {
        const ssize_t count = ::pread(
            fd.get(),
            out.data() + begin + got,
            wanted - got,
            static_cast<off_t>(piece.offset + static_cast<std::int64_t>(got))
        );
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count < 0 ? file_error("read", path, errno)
                             : Status(Error{ErrorCode::System, "'" + path + "' became shorter"});
        }
        got += static_cast<std::size_t>(count);
    }
    return Ok{};
}

Result<Pieces> read(const std::string& root, const AskPieces& asked) {
    Pieces answer{asked.key, ""};
    for (const FilePiece& piece : asked.pieces) {
        if (const Status read = read_piece(root, piece, answer.bytes); !read) {
            return read.error();
        }
    }
    return answer;
}

Status write_piece(const std::string& path, std::int64_t offset, std::string_view bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        return file_error("open", path, errno);
    }
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd.get(), bytes.data(), bytes.size(), offset);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return file_error("write", path, count < 0 ? errno : ENOSPC);
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
        offset += count;
    }
    return Ok{};
}

}  // namespace

PeerMessage answer_peer(const std::string& directory, const PeerMessage& asked) {
    const auto answer = [&](const auto& message, const auto& carry_out) -> PeerMessage {
        if (const Status ours = check_own_directory(directory); !ours) {
            return NoCheckpoint{message.key, ours.error().message};
        }
        auto done = carry_out(directory + "/" + checkpoint_name(message.key.number), message);
        if (!done) {
            return NoCheckpoint{message.key, done.error().message};
        }
        return std::move(done).value();
    };
    if (const auto* entries = std::get_if<AskEntries>(&asked)) {
        return answer(*entries, list);
    }
    if (const auto* pieces = std::get_if<AskPieces>(&asked)) {
        return answer(*pieces, read);
    }
    return NoCheckpoint{{}, "that is no question"};
}

Result<std::string> begin_fetch(const std::string& directory, std::uint32_t number) {
    constexpr mode_t kPrivate = 0700;
    const std::string problem = trial::detail::make_private_directories(directory);
    if (!problem.empty()) {
        return Error{ErrorCode::System, problem};
    }
    if (const Status ours = check_own_directory(directory); !ours) {
        return ours.error();
    }
    std::string place = directory + "/.fetch-" + checkpoint_name(number);
    remove_whole(place);
    if (::mkdir(place.c_str(), kPrivate) != 0) {
        return file_error("make", place, errno);
    }
    return place;
}

Status write_entries(const std::string& place, const std::vector<CheckpointEntry>& entries) {
    constexpr mode_t kDirectoryMode = 0700;
    constexpr mode_t kFileMode = 0600;
    for (const CheckpointEntry& entry : entries) {
        const std::string path = place + "/" + entry.path;
        int failed = 0;
        switch (entry.kind) {
            case CheckpointEntry::Kind::Directory:
                failed = ::mkdir(path.c_str(), kDirectoryMode);
                break;
            case CheckpointEntry::Kind::Link:
                failed = ::symlink(entry.target.c_str(), path.c_str());
                break;
            case CheckpointEntry::Kind::File: {
                const UniqueFd fd(
                    ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode)
                );
                failed = fd ? 0 : -1;
                break;
            }
        }
        if (failed != 0) {
            return file_error("make", path, errno);
        }
    }
    return Ok{};
}

Status write_pieces(
    const std::string& place,
    const std::vector<FilePiece>& pieces,
    const std::string& bytes
) {
    std::string_view rest = bytes;
    for (const FilePiece& piece : pieces) {
        const auto size = static_cast<std::size_t>(piece.bytes);
        if (size > rest.size()) {
            return Error{ErrorCode::Corrupt, "less came than was asked for"};
        }
        Status written = write_piece(place + "/" + piece.path, piece.offset, rest.substr(0, size));
        if (!written) {
            return written;
        }
        rest.remove_prefix(size);
    }
    return rest.empty() ? Status(Ok{}) : Error{ErrorCode::Corrupt, "more came than was asked for"};
}

Status finish_fetch(
    const std::string& directory,
    std::uint32_t number,
    const std::string& place,
    const std::vector<CheckpointEntry>& entries
) {
    const std::string problem = trial::detail::sync_tree(place);
    if (!problem.empty()) {
        return Error{ErrorCode::System, problem};
    }
    // Last, for some may forbid to write; a directory after what is in it.
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        const std::string path = place + "/" + entry->path;
        if (entry->kind != CheckpointEntry::Kind::Link &&
            ::chmod(path.c_str(), static_cast<mode_t>(entry->mode)) != 0) {
            return file_error("change the mode of", path, errno);
        }
    }
    // One of an earlier time here is the same or less.
    const std::string old = retire_checkpoint(directory, number);
    const std::string to = directory + "/" + checkpoint_name(number);
    if (::rename(place.c_str(), to.c_str()) != 0) {
        return file_error("rename to " + checkpoint_name(number), place, errno);
    }
    if (!old.empty()) {
        remove_whole(old);
    }
    return sync_directory(directory);
}

}  // namespace muster
