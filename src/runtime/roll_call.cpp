// SPDX-License-Identifier: Apache-2.0

#include "runtime/roll_call.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include "posix/unique_fd.hpp"
#include "protocol/messages.hpp"
#include "runtime/build_id.hpp"
#include "runtime/experiment_dir.hpp"
#include "runtime/host.hpp"
#include "wire/codec.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kHeadRank = 0;
/// Network file systems show a new file late.
constexpr Duration kStoragePatience = 20s;
constexpr Duration kStorageInterval = 200ms;
constexpr Duration kFlushPatience = 3s;

/// The build comes first, in plain text: another build could not read the rest.
std::string enrol_bytes(const Enrol& enrol) {
    return build_id() + "\n" + encode(enrol);
}

std::string random_token() {
    std::array<unsigned char, 16> bytes{};
    (void)!::getrandom(bytes.data(), bytes.size(), 0);
    std::string text;
    for (const unsigned char byte : bytes) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

/// Whether the file is there with this content; leaves errno.
bool has_content(const std::string& path, const std::string& content) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        return false;
    }
    std::string found(content.size() + 1, '\0');
    const ssize_t size = ::read(file.get(), found.data(), found.size());
    if (size < 0) {
        return false;
    }
    found.resize(static_cast<std::size_t>(size));
    errno = found == content ? 0 : ENOENT;
    return found == content;
}

}  // namespace

bool wait_for(
    Transport& transport,
    Duration patience,
    int stop_fd,
    const std::function<bool(std::vector<ReceivedMessage>)>& done
) {
    const Duration end = monotonic_now() + patience;
    std::vector<pollfd> fds;
    while (!done(transport.receive(true))) {
        const Duration left = end - monotonic_now();
        if (left <= Duration{0}) {
            return false;
        }
        fds.assign(1, {stop_fd, POLLIN, 0});
        transport.add_poll_fds(fds);
        const Duration wait = std::min({left, transport.longest_wait(), Duration(100ms)});
        const timespec timeout{wait / 1s, (wait % 1s).count()};
        if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) < 0) {
            fds.assign(fds.size(), {-1, 0, 0});
        }
        transport.polled(std::span<const pollfd>(fds).subspan(1));
        if (fds.front().revents != 0) {
            return false;
        }
    }
    return true;
}

void wait_until_sent(
    Transport& transport,
    const std::vector<std::uint32_t>& ranks,
    Duration patience
) {
    wait_for(transport, patience, -1, [&](const std::vector<ReceivedMessage>&) {
        transport.take_broken();
        return std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t rank) {
            return transport.unsent(rank) == 0;
        });
    });
}

RollCall::RollCall(Transport& transport, std::function<void(const std::string&)> say, int stop_fd)
    : transport_(transport),
      say_(std::move(say)),
      stop_fd_(stop_fd) {
    for (std::uint32_t rank = 1; rank < transport.size(); ++rank) {
        present_.push_back(rank);
    }
}

RollCall::~RollCall() {
    dismiss();
}

TeamFile RollCall::team(const std::vector<AgentRank>& agents, Duration lease) const {
    TeamFile team;
    team.token_path = token_path_;
    team.lease = lease;
    for (const AgentRank& agent : agents) {
        const auto enrol = enrolled_.find(agent.rank);
        if (agent.rank != kHeadRank && enrol != enrolled_.end()) {
            const Enrol& said = enrol->second;
            team.agents.push_back(
                {agent.rank, agent.inventory.name, said.host, said.boot_id, said.pid}
            );
        }
    }
    return team;
}

void RollCall::dismiss() {
    take_broken();
    for (const std::uint32_t rank : present_) {
        transport_.send(
            rank,
            Lane::Control,
            encode(Enlisted{.role = RankRole::Dismissed, .orderly = !lost_any_})
        );
    }
    wait_until_sent(transport_, present_, kFlushPatience);
    present_.clear();
}

void RollCall::lose(std::uint32_t rank, const std::string& why) {
    const auto found = std::find(present_.begin(), present_.end(), rank);
    if (found != present_.end()) {
        present_.erase(found);
        lost_any_ = true;
        say_(why);
    }
}

void RollCall::take_broken() {
    for (const BrokenPair& pair : transport_.take_broken()) {
        lose(pair.rank, fmt::format("rank {} is gone: {}", pair.rank, pair.why));
    }
}

Result<std::vector<EnrolledRank>> RollCall::gather(const Enrol& own, Duration timeout) {
    if (again_patience_ && !enrolled_.empty()) {
        take_broken();
        enrolled_[kHeadRank] = own;
        return enrolled_and_present();
    }
    std::map<std::uint32_t, Enrol> enrolled{{kHeadRank, own}};
    std::optional<Error> problem;
    const auto take = [&](const ReceivedMessage& message) {
        const std::size_t line_end = message.bytes.find('\n');
        const std::string build = message.bytes.substr(0, line_end);
        Result<Enrol> enrol = Error{ErrorCode::Corrupt, ""};
        if (build == build_id()) {
            enrol = decode_enrol(std::string_view(message.bytes).substr(line_end + 1));
        }
        if (!enrol.ok()) {
            problem = Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "rank {} runs muster {}, but rank 0 runs {}: all nodes must run the same "
                    "program",
                    message.from,
                    build.substr(0, 60),
                    build_id()
                )};
            return;
        }
        enrolled[message.from] = std::move(*enrol);
    };
    wait_for(transport_, timeout, stop_fd_, [&](const std::vector<ReceivedMessage>& messages) {
        for (const ReceivedMessage& message : messages) {
            take(message);
        }
        take_broken();
        return problem || std::all_of(present_.begin(), present_.end(), [&](std::uint32_t rank) {
                   return enrolled.count(rank) != 0;
               });
    });
    if (problem) {
        return *problem;
    }
    std::vector<std::uint32_t> missing;
    for (const std::uint32_t rank : present_) {
        if (enrolled.count(rank) == 0) {
            missing.push_back(rank);
        }
    }
    for (const std::uint32_t rank : missing) {
        lose(
            rank,
            fmt::format(
                "rank {} did not answer within {}; going on without it",
                rank,
                format_duration(timeout)
            )
        );
    }
    enrolled_ = std::move(enrolled);
    return enrolled_and_present();
}

std::vector<EnrolledRank> RollCall::enrolled_and_present() const {
    std::vector<EnrolledRank> ranks;
    for (const auto& [rank, enrol] : enrolled_) {
        if (rank == kHeadRank ||
            std::find(present_.begin(), present_.end(), rank) != present_.end()) {
            ranks.push_back({rank, enrol});
        }
    }
    return ranks;
}

void RollCall::end_run(const std::vector<std::uint32_t>& agents) {
    if (!again_patience_) {
        dismiss();
        return;
    }
    present_.insert(present_.end(), agents.begin(), agents.end());
    std::sort(present_.begin(), present_.end());
}

void RollCall::dismiss_ready(const std::vector<std::uint32_t>& ready) {
    const std::vector<ToAgent> words{Dismiss{.orderly = !lost_any_}};
    for (const std::uint32_t rank : ready) {
        transport_.send(rank, Lane::Control, encode(std::span<const ToAgent>(words)));
    }
    wait_until_sent(transport_, ready, kFlushPatience);
}

Result<std::string> RollCall::make_token(const EnlistOptions& options, std::string& path) {
    if (options.shared_directory.empty()) {
        return std::string();
    }
    const std::string token = random_token();
    path = fmt::format("{}/.token-{}", options.shared_directory, token.substr(0, 8));
    const Status written = replace_file(path, token, true);
    return written.ok() ? Result<std::string>(token) : Result<std::string>(written.error());
}

Result<std::vector<AgentRank>> RollCall::enlist(const Roles& roles, const EnlistOptions& options) {
    std::string path;
    const Result<std::string> token = make_token(options, path);
    if (!token.ok()) {
        return token.error();
    }
    Enlisted word;
    word.again = again_patience_.has_value();
    word.again_patience = again_patience_.value_or(Duration{0});
    for (const std::uint32_t rank : roles.idle) {
        word.role = RankRole::Idle;
        if (rank != kHeadRank) {
            transport_.send(rank, Lane::Control, encode(word));
        }
    }
    word.role = RankRole::Agent;
    word.environment = options.environment;
    word.token_path = path;
    word.token = *token;
    word.token_patience = std::min(kStoragePatience, options.timeout / 3);
    word.heartbeat = options.heartbeat;
    word.lease = options.lease;
    word.rejoin = options.rejoin;
    for (const AgentRank& agent : roles.agents) {
        if (agent.rank != kHeadRank) {
            word.inventory = agent.inventory;
            transport_.send(agent.rank, Lane::Control, encode(word));
        }
    }
    token_path_ = path;
    Result<std::vector<AgentRank>> ready = hear_who_is_ready(roles.agents, options);
    if (!path.empty()) {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
    return ready;
}

bool RollCall::is_lost(std::uint32_t rank) const {
    return rank != kHeadRank && std::find(present_.begin(), present_.end(), rank) == present_.end();
}

Result<std::vector<AgentRank>>
RollCall::hear_who_is_ready(const std::vector<AgentRank>& agents, const EnlistOptions& options) {
    std::map<std::uint32_t, AgentReady> heard;
    const auto is_ready = [&](const AgentRank& agent) {
        return agent.rank == kHeadRank || heard.count(agent.rank) != 0;
    };
    const auto done = [&](const std::vector<ReceivedMessage>& messages) {
        for (const ReceivedMessage& message : messages) {
            if (Result<AgentReady> seen = decode_agent_ready(message.bytes); seen.ok()) {
                heard[message.from] = std::move(*seen);
            } else if (heard.count(message.from) != 0) {
                // An agent that is ready does not wait for the others. What it said before was
                // for the head of an earlier run.
                early_.push_back(message);
            }
        }
        take_broken();
        return std::all_of(agents.begin(), agents.end(), [&](const AgentRank& agent) {
            return is_ready(agent) || is_lost(agent.rank);
        });
    };
    wait_for(transport_, options.timeout, stop_fd_, done);
    return settle_ready(agents, heard);
}

Result<std::vector<AgentRank>> RollCall::settle_ready(
    const std::vector<AgentRank>& agents,
    const std::map<std::uint32_t, AgentReady>& heard
) {
    std::string problem;
    std::vector<AgentRank> ready;
    for (const AgentRank& agent : agents) {
        const auto word = heard.find(agent.rank);
        if (agent.rank != kHeadRank && word == heard.end()) {
            lose(
                agent.rank,
                fmt::format(
                    "node {} (rank {}) fell silent before the run; going on without it",
                    agent.inventory.name,
                    agent.rank
                )
            );
        } else if (word != heard.end() && !word->second.problem.empty()) {
            problem += fmt::format(
                "{}node {} {}",
                problem.empty() ? "" : "; ",
                agent.inventory.name,
                word->second.problem
            );
        } else if (!is_lost(agent.rank)) {
            ready.push_back(agent);
        }
    }
    if (!problem.empty()) {
        if (again_patience_) {
            std::vector<std::uint32_t> began;
            for (const auto& [rank, said] : heard) {
                began.insert(began.end(), said.problem.empty() ? 1 : 0, rank);
            }
            dismiss_ready(began);
        }
        return Error{ErrorCode::InvalidInput, problem};
    }
    // Their run sends the agents away; those without a node are still ours.
    for (const AgentRank& agent : ready) {
        present_.erase(std::remove(present_.begin(), present_.end(), agent.rank), present_.end());
    }
    return ready;
}

Result<Enlisted> answer_roll_call(Transport& transport, const Enrol& own, Duration patience) {
    transport.send(kHeadRank, Lane::Control, enrol_bytes(own));
    std::optional<Result<Enlisted>> answer;
    const auto done = [&](const std::vector<ReceivedMessage>& messages) {
        for (const ReceivedMessage& message : messages) {
            answer = decode_enlisted(message.bytes);
        }
        for (const BrokenPair& pair : transport.take_broken()) {
            if (!answer) {
                answer = Error{ErrorCode::System, "rank 0 is gone: " + pair.why};
            }
        }
        return answer.has_value();
    };
    if (!wait_for(transport, patience, -1, done)) {
        return Error{
            ErrorCode::System,
            fmt::format("rank 0 said nothing for {}", format_duration(patience))};
    }
    return std::move(*answer);
}

Status find_token(const Enlisted& enlisted) {
    if (enlisted.token_path.empty()) {
        return Ok{};
    }
    const Duration end = monotonic_now() + enlisted.token_patience;
    while (!has_content(enlisted.token_path, enlisted.token)) {
        const int reason = errno;
        if (monotonic_now() >= end) {
            return Error{
                ErrorCode::InvalidInput,
                fmt::format(
                    "does not see {}, which rank 0 has just made ({}): set storage.path to a "
                    "directory that all nodes share",
                    enlisted.token_path,
                    std::generic_category().message(reason)
                )};
        }
        std::this_thread::sleep_for(kStorageInterval);
    }
    return Ok{};
}

void tell_ready(Transport& transport, const AgentReady& ready) {
    transport.send(kHeadRank, Lane::Control, encode(ready));
}

}  // namespace muster
