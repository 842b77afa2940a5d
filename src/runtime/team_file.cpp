// SPDX-License-Identifier: Apache-2.0

#include "runtime/team_file.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "muster/value.hpp"

#include "posix/unique_fd.hpp"
#include "runtime/experiment_dir.hpp"

namespace muster {
namespace {

/// Of a file that nobody can read.
constexpr std::chrono::seconds kLongestLease{600};

std::string file_in(const std::string& directory) {
    return directory + "/agents.json";
}

std::string sign_of(const std::string& token_path, std::uint32_t rank) {
    return fmt::format("{}-{}.ended", token_path, rank);
}

const Value* member_of(const Value::Map& map, const char* key) {
    for (const ValueMember& member : map) {
        if (member.key == key) {
            return &member.value;
        }
    }
    return nullptr;
}

std::string text_in(const Value::Map& map, const char* key) {
    const Value* value = member_of(map, key);
    const std::string* text = value != nullptr ? value->as_text() : nullptr;
    return text != nullptr ? *text : std::string();
}

std::int64_t number_in(const Value::Map& map, const char* key, std::int64_t otherwise) {
    const Value* value = member_of(map, key);
    const std::int64_t* number = value != nullptr ? value->as_int() : nullptr;
    return number != nullptr ? *number : otherwise;
}

}  // namespace

Status write_team(const std::string& directory, const TeamFile& team) {
    Value::List agents;
    for (const TeamMember& agent : team.agents) {
        agents.push_back(Value(Value::Map{
            {"rank", Value(std::int64_t{agent.rank})},
            {"node", agent.node},
            {"host", agent.host},
            {"boot", agent.boot_id},
            {"pid", Value(agent.pid)}}));
    }
    const auto lease = std::chrono::ceil<std::chrono::seconds>(team.lease).count();
    const Value json(Value::Map{
        {"token", team.token_path},
        {"lease_s", Value(std::int64_t{lease})},
        {"agents", Value(std::move(agents))}});
    return replace_file(file_in(directory), to_json(json) + "\n", true);
}

std::optional<TeamFile> read_team(const std::string& directory) {
    std::ifstream file(file_in(directory), std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    TeamFile team;
    team.lease = kLongestLease;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Result<Value> json = value_from_json(text);
    const Value::Map* map = json.ok() ? json->as_map() : nullptr;
    if (map == nullptr) {
        team.agents.push_back({0, "nodes that nobody knows any more", "", "", 0});
        return team;
    }
    team.token_path = text_in(*map, "token");
    team.lease = std::chrono::seconds{number_in(*map, "lease_s", kLongestLease.count())};
    const Value* agents = member_of(*map, "agents");
    const Value::List* list = agents != nullptr ? agents->as_list() : nullptr;
    for (const Value& entry : list != nullptr ? *list : Value::List()) {
        if (const Value::Map* agent = entry.as_map()) {
            team.agents.push_back(
                {static_cast<std::uint32_t>(number_in(*agent, "rank", 0)),
                 text_in(*agent, "node"),
                 text_in(*agent, "host"),
                 text_in(*agent, "boot"),
                 number_in(*agent, "pid", 0)}
            );
        }
    }
    return team;
}

void remove_team(const std::string& directory) {
    if (const std::optional<TeamFile> team = read_team(directory)) {
        for (const TeamMember& agent : team->agents) {
            ::unlink(sign_of(team->token_path, agent.rank).c_str());
        }
        ::unlink(file_in(directory).c_str());
    }
}

void sign_off(const std::string& token_path, std::uint32_t rank) {
    if (!token_path.empty()) {
        const std::string path = sign_of(token_path, rank);
        // Without the sign the next run waits for the lease: no reason to do more about it.
        const UniqueFd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
}

bool has_signed_off(const TeamFile& team, const TeamMember& member) {
    // Opened, since a network file system must ask its server then.
    const std::string path = sign_of(team.token_path, member.rank);
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0;
}

}  // namespace muster
