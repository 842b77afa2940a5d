// SPDX-License-Identifier: Apache-2.0
#include "process/stream_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "process/files.hpp"

namespace muster {
namespace {

struct Chunk {
    std::int64_t offset = 0;
    std::int64_t length = 0;
};

/// The chunk that an index line speaks of, if the line is one and `trial`'s.
bool parse_line(const std::string& line, TrialId trial, Chunk& chunk) {
    std::uint32_t owner = 0;
    const int found = std::sscanf(  // NOLINT: bounded conversions, result checked
        line.c_str(),
        "%" SCNd64 " %" SCNd64 " %" SCNu32 " ",
        &chunk.offset,
        &chunk.length,
        &owner
    );
    return found == 3 && owner == trial.value && chunk.offset >= 0 && chunk.length >= 0;
}

Status read_chunk(int fd, Chunk chunk, const std::string& path, std::string& out) {
    std::string buffer;
    while (chunk.length > 0) {
        buffer.resize(static_cast<std::size_t>(std::min<std::int64_t>(chunk.length, 1 << 20)));
        const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), chunk.offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return Error{
                ErrorCode::Corrupt,
                fmt::format(
                    "'{}' ends before byte {}, of which its index speaks", path, chunk.offset
                )};
        }
        out.append(buffer, 0, static_cast<std::size_t>(got));
        chunk.offset += got;
        chunk.length -= got;
    }
    return Ok{};
}

}  // namespace

Status StreamAppender::append(std::string_view bytes) {
    if (!file_ || !index_) {
        Result<UniqueFd> file = open_for_append(path_);
        if (!file) {
            return file.error();
        }
        Result<UniqueFd> index = open_for_append(path_ + ".index");
        if (!index) {
            return index.error();
        }
        file_ = std::move(file).value();
        index_ = std::move(index).value();
    }
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(file_.get(), bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return system_error("cannot write '" + path_ + "'", errno);
        }
        // O_APPEND leaves the offset behind what this write added, whoever else wrote since.
        const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
        const std::string line = fmt::format(
            "{} {} {} {}.{} {}\n",
            end - wrote,
            wrote,
            key_.trial.value,
            key_.attempt.epoch,
            key_.attempt.number,
            key_.member.value
        );
        if (::write(index_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
            return system_error("cannot write '" + path_ + ".index'", errno);
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return Ok{};
}

Result<std::string> read_stream_output(const std::string& path, TrialId trial) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> index(
        std::fopen((path + ".index").c_str(), "re"), &std::fclose
    );
    if (!file || !index) {
        return Error{ErrorCode::NotFound, fmt::format("cannot open '{}' with its index", path)};
    }
    std::string out;
    std::string line;
    for (int c = std::fgetc(index.get()); c != EOF; c = std::fgetc(index.get())) {
        if (c != '\n') {
            line.push_back(static_cast<char>(c));
            continue;
        }
        Chunk chunk;
        if (parse_line(line, trial, chunk)) {
            if (Status read = read_chunk(file.get(), chunk, path, out); !read) {
                return read.error();
            }
        }
        line.clear();
    }
    return out;
}

}  // namespace muster
