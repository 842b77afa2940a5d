// SPDX-License-Identifier: Apache-2.0
//
// cgroup - /proc/self/cgroup names the process's group in each hierarchy; /proc/self/mountinfo says
// where that hierarchy is mounted and which part of it is seen there. In a container the two often
// disagree (the path is the host's, the mount shows the container's part): then the mount's own
// directory is the group.

#include "probe/cgroup.hpp"

#include <algorithm>
#include <string_view>

#include "probe/text.hpp"

namespace muster {
namespace {

/// One mounted hierarchy and the process's place in it.
struct Hierarchy {
    bool unified = false;
    /// Of version 1: "cpu", "cpuset", "memory".
    std::vector<std::string> controllers;
    /// From the process's group up to the mount point.
    std::vector<std::string> levels;

    bool has(std::string_view controller) const {
        return std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
    }
};

/// One line of /proc/self/mountinfo that mounts control groups.
struct Mount {
    bool unified = false;
    std::string_view shown_part;
    std::string_view mount_point;
    std::vector<std::string_view> options;
};

std::optional<Mount> parse_mount(std::string_view line) {
    // "31 23 0:28 <shown part> <mount point> <options> … - <type> <source> <super options>"
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) {
        return std::nullopt;
    }
    const auto before = probe::split(line.substr(0, dash), ' ');
    const auto after = probe::split(probe::trim(line.substr(dash + 3)), ' ');
    if (before.size() < 5 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) {
        return std::nullopt;
    }
    return Mount{
        .unified = after[0] == "cgroup2",
        .shown_part = before[3],
        .mount_point = before[4],
        .options = probe::split(after[2], ',')};
}

/// The process's path in the hierarchy that `mount` mounts, as /proc/self/cgroup writes it.
std::optional<std::string_view> group_path(std::string_view groups, const Mount& mount) {
    for (const std::string_view line : probe::split(groups, '\n')) {
        // "4:memory:/some/path", and "0::/some/path" for version 2.
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) {
            continue;
        }
        const std::string_view listed = line.substr(first + 1, second - first - 1);
        const auto controllers = probe::split(listed, ',');
        const bool shares_controller =
            std::any_of(controllers.begin(), controllers.end(), [&](std::string_view controller) {
                return std::find(mount.options.begin(), mount.options.end(), controller) !=
                       mount.options.end();
            });
        if (mount.unified ? listed.empty() : !listed.empty() && shares_controller) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

std::vector<std::string>
levels_of(const std::string& root, const Mount& mount, std::string_view path) {
    const std::string_view shown = mount.shown_part == "/" ? "" : mount.shown_part;
    const bool inside = path.substr(0, shown.size()) == shown &&
                        (path.size() == shown.size() || path[shown.size()] == '/');
    std::string below(inside ? path.substr(shown.size()) : "");
    const std::string top = root + std::string(mount.mount_point);
    std::vector<std::string> levels;
    while (!below.empty() && below != "/") {
        levels.push_back(top + below);
        below.erase(below.rfind('/'));
    }
    levels.push_back(top);
    return levels;
}

std::vector<Hierarchy> hierarchies(const std::string& root) {
    std::vector<Hierarchy> found;
    const auto groups = probe::read_small_file(root + "/proc/self/cgroup");
    const auto mounts = probe::read_small_file(root + "/proc/self/mountinfo");
    if (!groups || !mounts) {
        return found;
    }
    for (const std::string_view line : probe::split(*mounts, '\n')) {
        const auto mount = parse_mount(line);
        if (!mount) {
            continue;
        }
        if (const auto path = group_path(*groups, *mount)) {
            Hierarchy hierarchy{.unified = mount->unified};
            hierarchy.controllers.assign(mount->options.begin(), mount->options.end());
            hierarchy.levels = levels_of(root, *mount, *path);
            found.push_back(std::move(hierarchy));
        }
    }
    return found;
}

void lower(std::optional<std::int64_t>& limit, std::optional<std::int64_t> by) {
    if (by && (!limit || *by < *limit)) {
        limit = by;
    }
}

/// Version 1 writes "no limit" as the highest multiple of a page.
std::optional<std::int64_t> memory_limit(const std::string& path) {
    constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;
    const auto content = probe::read_small_file(path);
    const auto limit = content ? probe::parse_whole(*content) : std::nullopt;
    return limit && *limit >= 0 && *limit < kUnlimited ? limit : std::nullopt;
}

std::optional<std::int64_t> share(std::optional<std::int64_t> quota, std::int64_t period) {
    constexpr std::int64_t kScale = 10'000;
    constexpr std::int64_t kHighest = std::int64_t{1} << 40;
    if (!quota || *quota <= 0 || *quota > kHighest || period <= 0) {
        return std::nullopt;
    }
    return *quota * kScale / period;
}

std::optional<std::int64_t> cpu_limit_v2(const std::string& path) {
    // "max 100000" or "150000 100000".
    const auto content = probe::read_small_file(path);
    if (!content) {
        return std::nullopt;
    }
    const auto words = probe::split(probe::trim(*content), ' ');
    const auto period = words.size() == 2 ? probe::parse_whole(words[1]) : std::nullopt;
    return period ? share(probe::parse_whole(words[0]), *period) : std::nullopt;
}

std::optional<std::int64_t> cpu_limit_v1(const std::string& directory) {
    const auto quota = probe::read_small_file(directory + "/cpu.cfs_quota_us");
    const auto period = probe::read_small_file(directory + "/cpu.cfs_period_us");
    if (!quota || !period) {
        return std::nullopt;
    }
    return share(probe::parse_whole(*quota), probe::parse_whole(*period).value_or(0));
}

/// The cpuset of the nearest level that says one.
std::optional<std::vector<std::uint32_t>> cpuset(const Hierarchy& hierarchy) {
    const std::vector<std::string> files =
        hierarchy.unified ? std::vector<std::string>{"/cpuset.cpus.effective"}
                          : std::vector<std::string>{"/cpuset.effective_cpus", "/cpuset.cpus"};
    for (const std::string& level : hierarchy.levels) {
        for (const std::string& file : files) {
            const auto content = probe::read_small_file(level + file);
            auto cpus = content ? probe::parse_cpu_list(*content) : std::nullopt;
            if (cpus && !cpus->empty()) {
                return cpus;
            }
        }
    }
    return std::nullopt;
}

void apply(const Hierarchy& hierarchy, CgroupLimits& limits) {
    for (const std::string& level : hierarchy.levels) {
        if (hierarchy.unified) {
            lower(limits.memory_bytes, memory_limit(level + "/memory.max"));
            lower(limits.cpu_ten_thousandths, cpu_limit_v2(level + "/cpu.max"));
        }
        if (hierarchy.has("memory")) {
            lower(limits.memory_bytes, memory_limit(level + "/memory.limit_in_bytes"));
        }
        if (hierarchy.has("cpu")) {
            lower(limits.cpu_ten_thousandths, cpu_limit_v1(level));
        }
    }
    if (hierarchy.unified || hierarchy.has("cpuset")) {
        if (auto cpus = cpuset(hierarchy)) {
            limits.cpus = limits.cpus ? probe::intersection(*limits.cpus, *cpus) : std::move(cpus);
        }
    }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
    CgroupLimits limits;
    for (const Hierarchy& hierarchy : hierarchies(root)) {
        apply(hierarchy, limits);
    }
    return limits;
}

}  // namespace muster
