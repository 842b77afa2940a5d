// SPDX-License-Identifier: Apache-2.0

#include "transport/mpi_world.hpp"

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include "base/check.hpp"
#include "transport/mpi_transport.hpp"

namespace muster {
namespace {

/// Ends the process when what it guards takes longer than `limit`.
class Guard {
  public:
    Guard(Duration limit, int exit_code, std::string why)
        : thread_([this, limit, exit_code, text = std::move(why)] {
              std::unique_lock<std::mutex> lock(mutex_);
              if (!done_.wait_for(lock, limit, [this] { return over_; })) {
                  // Not through stdio, whose locks the guarded thread may hold.
                  if (!text.empty() && ::write(STDERR_FILENO, text.data(), text.size()) < 0) {
                      ::_exit(exit_code);
                  }
                  ::_exit(exit_code);
              }
          }) {}
    ~Guard() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
        }
        done_.notify_all();
        thread_.join();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable done_;
    bool over_ = false;
    std::thread thread_;
};

// The environment is read and set before MPI or any thread of ours is there to look at it.
// NOLINTBEGIN(concurrency-mt-unsafe)

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

void set_unless_set(const char* name, const char* value) {
    // Removed from a trial's environment, with those that it names; see process/environment.hpp.
    constexpr const char* kOwnVariables = "MUSTER_OWN_VARIABLES";
    if (std::getenv(name) != nullptr) {
        return;
    }
    ::setenv(name, value, 1);
    const std::string before = variable(kOwnVariables);
    const std::string names = before.empty() ? name : before + ":" + name;
    ::setenv(kOwnVariables, names.c_str(), 1);
}

// NOLINTEND(concurrency-mt-unsafe)

/// By what MPI was told to use: through TCP alone, to this process itself apart.
bool uses_tcp_only() {
    // A frame is to travel in one piece.
    if (variable("OMPI_MCA_pml") != "ob1" || !variable("OMPI_MCA_btl_tcp_eager_limit").empty()) {
        return false;
    }
    const std::string btl = variable("OMPI_MCA_btl");
    std::string_view rest = btl;
    bool tcp = false;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view name = rest.substr(0, comma);
        if (name != "self" && name != "tcp") {
            return false;
        }
        tcp = tcp || name == "tcp";
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return tcp;
}

}  // namespace

struct MpiWorld::State {
    MpiTransportOptions options;
    std::string processor_name;
    std::unique_ptr<MpiTransport> transport;
    bool finalized = false;
};

MpiWorld::MpiWorld(std::unique_ptr<State> state) : state_(std::move(state)) {}

bool MpiWorld::is_initialized() {
    int flag = 0;
    MPI_Initialized(&flag);
    return flag != 0;
}

Result<std::unique_ptr<MpiWorld>> MpiWorld::join(const JoinOptions& options) {
    set_unless_set("OMPI_MCA_pml", "ob1");
    set_unless_set("OMPI_MCA_btl", "self,tcp");

    auto state = std::make_unique<State>();
    state->options.tcp_only = uses_tcp_only();
    state->options.sockets_before = TcpSockets::open_now();
    {
        const Guard guard(
            options.limit,
            options.exit_code_when_late,
            fmt::format(
                "muster: MPI_Init did not come back within {}: a rank of this job did not start, "
                "or "
                "can't be reached\n",
                format_duration(options.limit)
            )
        );
        int provided = 0;
        const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        if (code != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED) {
            return Error{
                ErrorCode::System,
                fmt::format("MPI_Init_thread failed (code {}, level {})", code, provided)};
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    int size = 0;
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
        MPI_Get_processor_name(name.data(), &length) != MPI_SUCCESS) {
        return Error{ErrorCode::System, "MPI does not tell this process its rank"};
    }
    state->options.rank = static_cast<std::uint32_t>(rank);
    state->options.size = static_cast<std::uint32_t>(size);
    state->processor_name.assign(name.data(), static_cast<std::size_t>(length));
    state->transport = std::make_unique<MpiTransport>(state->options);
    return std::unique_ptr<MpiWorld>(new MpiWorld(std::move(state)));
}

MpiWorld::~MpiWorld() {
    finalize(0);
}

std::uint32_t MpiWorld::rank() const {
    return state_->options.rank;
}

std::uint32_t MpiWorld::size() const {
    return state_->options.size;
}

const std::string& MpiWorld::processor_name() const {
    return state_->processor_name;
}

Transport& MpiWorld::transport() {
    check(!state_->finalized, "a world is not used after its end");
    return *state_->transport;
}

void MpiWorld::finalize(int exit_code, Duration limit) {
    if (std::exchange(state_->finalized, true)) {
        return;
    }
    state_->transport->close();
    std::fflush(nullptr);
    const Guard guard(limit, exit_code, "");
    MPI_Finalize();
}

void MpiWorld::leave_at_once(int exit_code) {
    std::fflush(nullptr);
    ::_exit(exit_code);
}

}  // namespace muster
