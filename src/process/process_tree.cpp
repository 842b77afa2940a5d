// SPDX-License-Identifier: Apache-2.0
#include "process/process_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"

namespace muster {
namespace {

void append_numbers(const std::string& text, std::vector<pid_t>& out) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        pid_t pid = 0;
        const auto parsed = std::from_chars(at, end, pid);
        if (parsed.ec == std::errc{}) {
            out.push_back(pid);
        }
        at = std::max(parsed.ptr, at + 1);
    }
}

void append_children(const std::string& path, std::vector<pid_t>& out) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        return;
    }
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(got));
    }
    append_numbers(text, out);
}

}  // namespace

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> threads;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(
        ::opendir(fmt::format("/proc/{}/task", pid).c_str()), &::closedir
    );
    if (!directory) {
        return threads;
    }
    // readdir is safe here: the stream is this function's own.
    while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
        if (entry->d_name[0] != '.') {
            threads.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
        }
    }
    return threads;
}

std::vector<pid_t> children_of_self() {
    std::vector<pid_t> children;
    append_children(fmt::format("/proc/self/task/{}/children", ::getpid()), children);
    return children;
}

std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots) {
    std::vector<pid_t> all = roots;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const pid_t pid = all[i];
        for (const pid_t thread : threads_of(pid)) {
            append_children(fmt::format("/proc/{}/task/{}/children", pid, thread), all);
        }
    }
    return all;
}

void signal_all(const std::vector<pid_t>& roots, int signal) {
    const pid_t own_group = ::getpgrp();
    std::vector<pid_t> done;
    for (const pid_t pid : with_descendants(roots)) {
        const pid_t group = ::getpgid(pid);
        if (group <= 0 || group == own_group) {
            ::kill(pid, signal);
            continue;
        }
        if (std::find(done.begin(), done.end(), group) == done.end()) {
            done.push_back(group);
            ::kill(-group, signal);
        }
    }
}

}  // namespace muster
