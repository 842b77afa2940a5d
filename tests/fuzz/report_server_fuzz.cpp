// SPDX-License-Identifier: Apache-2.0
//
// report_server_fuzz - what two trials send to the report socket, piece by piece in turn, over a
// real server. Nothing that one says is taken for the other's, and nothing is left of either.

#include <cstring>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "posix/unique_fd.hpp"
#include "report/report_server.hpp"

namespace muster::fuzz {
namespace {

const MemberKey kMember{TrialId{42}, AttemptId{1, 7}, MemberId{0}};
const MemberKey kOther{TrialId{43}, AttemptId{1, 8}, MemberId{0}};
constexpr std::string_view kHello =
    R"({"type":"hello","protocol":1,"trial":"00043","attempt":"1.8"})";

UniqueFd connect_to(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);  // NOLINT
    check(::connect(fd.get(), generic, sizeof address) == 0, "the server takes connections");
    return fd;
}

void send_to(const UniqueFd& fd, std::string_view bytes) {
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void check_events(const std::vector<AgentEvent>& events) {
    for (const AgentEvent& event : events) {
        if (const auto* report = std::get_if<ReportArrived>(&event)) {
            check(report->key == kMember || report->key == kOther, "only who is known reports");
            check(!report->metrics.empty(), "a report has a metric");
        }
    }
}

/// The first byte of a piece says whose it is, and more that is done after it.
void play(
    ReportServer& server,
    const UniqueFd& first,
    const UniqueFd& other,
    std::string_view piece
) {
    if (piece.empty()) {
        return;
    }
    const auto what = static_cast<unsigned char>(piece.front());
    send_to((what & 1U) == 0 ? first : other, piece.substr(1));
    if ((what & 2U) != 0) {
        check_events(server.receive(1 + what / 16));
    }
    if ((what & 4U) != 0) {
        server.tell_stop(kMember);
    }
    if ((what & 8U) != 0) {
        check_events(server.drain(kOther));
    }
}

}  // namespace

void try_input(std::string_view input) {
    static const ScratchDir kDir;
    static ReportServer server = ReportServer::listen(kDir.path()).value();
    server.expect(kMember, R"({"lr": 0.1})");
    server.expect(kOther, "{}");
    {
        const UniqueFd first = connect_to(server.socket_path());
        const UniqueFd other = connect_to(server.socket_path());
        send_to(other, std::string(kHello) + "\n");
        for (const std::string_view piece : pieces_of(input)) {
            play(server, first, other, piece);
        }
        check_events(server.receive());
        check_events(server.drain(kMember));
    }
    check_events(server.drain(kOther));
    server.forget(kMember);
    server.forget(kOther);
    for (int round = 0; round < 100 && server.connection_count() > 0; ++round) {
        check_events(server.receive());
    }
    check(server.connection_count() == 0, "nothing is left of those who went");
}

}  // namespace muster::fuzz
