// SPDX-License-Identifier: Apache-2.0

#include "muster/session.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "launch/exit_line.hpp"
#include "library/session_state.hpp"

namespace muster {
namespace {

/// A start of a trial copies page tables: about a millisecond for 256 MB.
constexpr std::int64_t kMuchMemory = 256'000'000;

bool session_exists = false;
bool some_rank_was_lost = false;

/// The first NVIDIA device that is open; empty when there is none.
std::string open_device() {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
        std::string target = std::filesystem::read_symlink(entry.path(), failed).string();
        if (target.starts_with("/dev/nvidia")) {
            return target;
        }
    }
    return "";
}

/// Resident memory that no other process shares, in bytes.
std::int64_t private_memory() {
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0;
    std::int64_t resident = 0;
    std::int64_t shared = 0;
    file >> size >> resident >> shared;
    return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

Status check_process() {
    if (session_exists) {
        return Error{
            ErrorCode::Conflict,
            "there is a Session already: make one at the start of main() and give it every "
            "trainable; several Tuners can use it one after the other"};
    }
    if (MpiWorld::is_initialized()) {
        return Error{
            ErrorCode::InvalidInput,
            "MPI is initialised already: make the Session before MPI_Init, and leave MPI_Init out: "
            "Session calls it when a launcher started the program"};
    }
    if (const std::string device = open_device(); !device.empty()) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "the program holds {} open, and CUDA does not work in a forked process: make the "
                "Session before the first call of CUDA",
                device
            )};
    }
    return Ok{};
}

RunCommand command_of(const SessionOptions& options) {
    RunCommand command;
    command.node.node_resources = options.node_resources;
    command.node.cpu_unit = options.cpus_are_threads ? CpuUnit::Threads : CpuUnit::Cores;
    command.team = {
        .rank_is_node = options.rank_is_node,
        .dedicated_head = options.dedicated_head,
        .cluster = options.cluster,
        .start_timeout = options.start_timeout,
        .lease = options.lease,
        .wait_for_nodes = options.wait_for_nodes,
        .rejoin = options.rejoin};
    command.keep_going = options.keep_going;
    command.fresh = options.fresh;
    command.retry_failed = options.retry_failed;
    command.restart_failed = options.retry_failed && options.restart_failed;
    command.plain = options.plain;
    command.quiet = options.quiet;
    return command;
}

/// Takes the options out of the program's arguments.
Status take_options(int& argc, char** argv, RunCommand& command) {
    std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    if (Status taken = take_run_options(words, command); !taken.ok()) {
        return taken;
    }
    // What is left is in its old order.
    int kept = argc > 0 ? 1 : 0;
    for (int index = kept; index < argc; ++index) {
        const auto left = static_cast<std::size_t>(kept - 1);
        if (left < words.size() && words[left] == argv[index]) {
            argv[kept++] = argv[index];
        }
    }
    argc = kept;
    argv[argc] = nullptr;
    return Ok{};
}

/// The launcher is told how the program ended, whatever main() returns.
void at_exit(int status, void* /*unused*/) {
    announce_exit_code(status);
    if (some_rank_was_lost) {
        MpiWorld::leave_at_once(status);
    }
}

}  // namespace

int exit_code_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::System:
            return kExitSystem;
        case ErrorCode::Infeasible:
            return kExitInfeasible;
        case ErrorCode::InvalidInput:
        case ErrorCode::NotFound:
        case ErrorCode::Conflict:
        case ErrorCode::Corrupt:
        case ErrorCode::NotSupported:
            break;
    }
    return kExitBadInput;
}

Session::State::~State() {
    session_exists = false;
    if (!roll_call) {
        return;
    }
    roll_call->dismiss();
    const bool lost = roll_call->lost_any();
    roll_call.reset();
    started->run_dir.reset();
    if (lost) {
        // Nobody may wait for a lost rank: the program ends without MPI_Finalize.
        some_rank_was_lost = true;
        (void)started->world.release();
    } else {
        started->world->finalize(kExitOk);
    }
}

Result<Session> Session::open(
    int& argc,
    char**& argv,
    const Trainables& trainables,
    const SessionOptions& options
) {
    if (const Status good = check_process(); !good.ok()) {
        return good.error();
    }
    auto state = std::make_unique<State>();
    state->command = command_of(options);
    if (const Status taken = take_options(argc, argv, state->command); !taken.ok()) {
        return taken.error();
    }
    if (const std::int64_t memory = private_memory(); memory > kMuchMemory) {
        std::fputs(
            fmt::format(
                "muster: the program has {} of its own memory already: each start of a trial "
                "copies its page tables; make the Session before loading what trials need not "
                "share\n",
                format_bytes(memory)
            )
                .c_str(),
            stderr
        );
    }
    Result<std::unique_ptr<StartedProgram>> started = start(trainables);
    if (!started.ok()) {
        return started.error();
    }
    state->started = std::move(*started);
    MpiWorld* world = state->started->world.get();
    if (world != nullptr && world->rank() != 0) {
        const CommandEnd end = serve(state->command.node, state->started->surroundings());
        const int code = leave(*state->started, end);
        state->started.reset();
        std::exit(code);  // NOLINT(concurrency-mt-unsafe): the only thread of the program
    }
    session_exists = true;
    if (world != nullptr) {
        ::on_exit(at_exit, nullptr);
        state->roll_call.emplace(
            world->transport(),
            [&state = *state](const std::string& text) {
                if (state.observer) {
                    state.observer->on_note(NoteLevel::Warning, text);
                }
            },
            -1
        );
        state->roll_call->keep_on(options.idle_patience);
    }
    // Between runs signals mean what they mean to the program.
    state->started->signals.reset();
    return Session(std::move(state));
}

Session::Session(
    int& argc,
    char**& argv,
    const Trainables& trainables,
    const SessionOptions& options
) {
    Result<Session> opened = open(argc, argv, trainables, options);
    if (!opened.ok()) {
        if (rank_by_launcher().empty() || rank_by_launcher() == "0") {
            complain(opened.error());
        }
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing of muster runs
        std::exit(exit_code_of(opened.error()));
    }
    state_ = std::move(opened->state_);
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::uint32_t Session::ranks() const {
    return state_->started->world ? state_->started->world->size() : 1;
}

}  // namespace muster
