// SPDX-License-Identifier: Apache-2.0

#include "launch/launch_line.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <netdb.h>

#include "launch/exit_line.hpp"

namespace muster {
namespace {

using Words = std::vector<std::string>;

void append(Words& line, std::initializer_list<std::string> words) {
    line.insert(line.end(), words.begin(), words.end());
}

std::string joined(const Words& words, std::string_view between) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : std::string(between)) + word;
    }
    return text;
}

Words srun_line(const LaunchOptions& options, const LaunchPlace& place) {
    const std::string nodes = std::to_string(options.ranks > 0 ? options.ranks : place.slurm_nodes);
    Words line{"srun"};
    append(line, {"-N", nodes, "-n", nodes, "--ntasks-per-node=1", "--mpi=pmix"});
    // What is said to rank 0 on stdin is for it alone.
    append(line, {"--input=0"});
    append(line, {"--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--cpu-bind=none"});
    line.emplace_back(place.slurm_gpus_by_job ? "--export=ALL,SLURM_OVERLAP=1" : "--overlap");
    return line;
}

/// The line of mpirun, in which the user's own words take the place of ours: mpirun takes each
/// setting once.
class MpirunLine {
  public:
    explicit MpirunLine(const Words& users) : users_(users) {}

    void add(std::initializer_list<std::string> words) { append(line_, words); }
    void option(const std::string& name, const std::string& value) {
        if (std::find(users_.begin(), users_.end(), name) == users_.end()) {
            append(line_, {name, value});
        }
    }
    void mca(const std::string& name, const std::string& value) {
        const auto found = std::adjacent_find(
            users_.begin(),
            users_.end(),
            [&](const std::string& left, const std::string& right) {
                return left.ends_with("-mca") && right == name;
            }
        );
        if (found == users_.end()) {
            append(line_, {"--mca", name, value});
        }
    }
    Words take() { return std::move(line_); }

  private:
    const Words& users_;
    Words line_{"mpirun"};
};

/// The host of every rank: each host once, in the order given, and from the first again when there
/// are more ranks. "n1:2" is n1 with two slots, which say nothing here.
Words hosts_of_ranks(const LaunchOptions& options) {
    Words hosts;
    for (const std::string& host : options.hosts) {
        const std::string name = host.substr(0, host.find(':'));
        if (std::find(hosts.begin(), hosts.end(), name) == hosts.end()) {
            hosts.push_back(name);
        }
    }
    const std::size_t different = hosts.size();
    while (different > 0 && hosts.size() < options.ranks) {
        hosts.push_back(hosts[hosts.size() - different]);
    }
    hosts.resize(
        options.ranks > 0 ? std::min<std::size_t>(hosts.size(), options.ranks) : different
    );
    return hosts;
}

Words mpirun_line(const LaunchOptions& options, const LaunchPlace& place) {
    MpirunLine line(options.more);
    line.add({"--enable-recovery"});
    line.option("--bind-to", "none");
    const Words hosts = hosts_of_ranks(options);
    if (!hosts.empty()) {
        // Every other way begins with mpirun's own host, wherever that stands.
        line.option("--map-by", "seq");
        line.add({"--host", joined(hosts, ",")});
        // Also inside a Slurm job the hosts are those that were named.
        line.mca("ras", "^slurm");
        line.mca("plm", "rsh");
        line.mca("plm_rsh_no_tree_spawn", "1");
    } else if (place.in_slurm_job && options.ranks == 0) {
        line.option("--map-by", "ppr:1:node");
    } else {
        line.option("-n", std::to_string(std::max<std::uint32_t>(options.ranks, 1)));
        line.option("--map-by", "node");
        line.add({"--oversubscribe"});
    }
    if (!options.agent.empty()) {
        line.mca("plm_rsh_agent", options.agent);
    }
    if (!options.interface.empty()) {
        line.mca("btl_tcp_if_include", options.interface);
        line.mca("oob_tcp_if_include", options.interface);
    }
    line.add({"-x", std::string(kLaunchToken), "-x", std::string(kTerminal)});
    return line.take();
}

bool is_blank(char letter) {
    return std::isspace(static_cast<unsigned char>(letter)) != 0;
}

Words split(std::string_view text) {
    Words words;
    for (const char letter : text) {
        if (!is_blank(letter)) {
            if (words.empty() || words.back().empty()) {
                words.resize(std::max<std::size_t>(words.size(), 1));
            }
            words.back() += letter;
        } else if (!words.empty() && !words.back().empty()) {
            words.emplace_back();
        }
    }
    if (!words.empty() && words.back().empty()) {
        words.pop_back();
    }
    return words;
}

bool is_setting(const std::string& word) {
    for (const std::string_view name : {"slots=", "max_slots=", "max-slots="}) {
        if (word.starts_with(name)) {
            const std::string number = word.substr(name.size());
            return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
        }
    }
    return false;
}

}  // namespace

Result<Words> launch_line(const LaunchOptions& options, const LaunchPlace& place) {
    const bool names_hosts = !options.hosts.empty() || !options.hostfile.empty();
    if (!options.hosts.empty() && !options.hostfile.empty()) {
        return Error{
            ErrorCode::InvalidInput, "--hosts and --hostfile both say where to run; leave one out"};
    }
    const bool srun = options.with == LaunchWith::Srun ||
                      (options.with == LaunchWith::Automatic && place.in_slurm_job &&
                       !names_hosts && options.ranks == 0);
    if (srun && !place.in_slurm_job) {
        return Error{
            ErrorCode::InvalidInput,
            "--with srun needs a Slurm job: use it in an sbatch script or under salloc, or see "
            "slurm/muster.sbatch"};
    }
    if (srun && (names_hosts || !options.agent.empty() || !options.interface.empty())) {
        return Error{
            ErrorCode::InvalidInput,
            "srun takes the hosts of its job: --hosts, --hostfile, --agent and --interface are "
            "for mpirun (--with mpirun)"};
    }
    if (!options.agent.empty() && !names_hosts) {
        return Error{
            ErrorCode::InvalidInput,
            "--agent is what starts muster on the hosts of --hosts or --hostfile: name them"};
    }
    if (srun && options.ranks > place.slurm_nodes) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "-n {}: the job has {} nodes, and each gets one rank",
                options.ranks,
                place.slurm_nodes
            )};
    }
    Words line = srun ? srun_line(options, place) : mpirun_line(options, place);
    line.insert(line.end(), options.more.begin(), options.more.end());
    line.push_back(options.program);
    line.insert(line.end(), options.arguments.begin(), options.arguments.end());
    return line;
}

Result<Words> parse_hostfile(std::string_view text, const std::string& path) {
    Words hosts;
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::string_view whole = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(whole.size() + 1, text.size()));
        const Words words = split(whole.substr(0, whole.find('#')));
        if (words.empty()) {
            continue;
        }
        const auto refuse = [&](const std::string& why) {
            return Error{ErrorCode::InvalidInput, fmt::format("{}:{}: {}", path, number, why)};
        };
        if (words.front().find('=') != std::string::npos) {
            return refuse(
                fmt::format("'{}' is no host; write a name and perhaps slots=N", words.front())
            );
        }
        for (std::size_t index = 1; index < words.size(); ++index) {
            if (!is_setting(words[index])) {
                return refuse(fmt::format(
                    "'{}' is not understood; behind a name may stand slots=N", words[index]
                ));
            }
        }
        hosts.push_back(words.front());
    }
    if (hosts.empty()) {
        return Error{ErrorCode::InvalidInput, path + ": names no host"};
    }
    return hosts;
}

Status look_up(const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) {
        // "n1:2" is n1 with two slots.
        const std::string name = host.substr(0, host.find(':'));
        addrinfo* found = nullptr;
        const int problem = ::getaddrinfo(name.c_str(), nullptr, nullptr, &found);
        if (problem != 0) {
            return Error{
                ErrorCode::InvalidInput, fmt::format("host {}: {}", name, ::gai_strerror(problem))};
        }
        ::freeaddrinfo(found);
    }
    return Ok{};
}

}  // namespace muster
