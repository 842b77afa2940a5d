// SPDX-License-Identifier: Apache-2.0

#include "transport/mpi_wire.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include <mpi.h>

#include "base/check.hpp"

// The checker looks for a request's wait in the function that posts it.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)

namespace muster {
namespace {

constexpr int kTag = 1;

struct Transfer {
    std::uint32_t rank = 0;
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    std::chrono::steady_clock::time_point since;
};

int as_int(std::size_t value) {
    return static_cast<int>(value);
}

std::string error_text(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
        return "MPI error " + std::to_string(code);
    }
    return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

struct MpiWire::State {
    std::size_t longest_frame = 0;
    /// Posted ahead, for frames of all ranks in turn; nothing when it is MPI_Iprobe.
    std::unique_ptr<Transfer> ahead;
    /// By rank; at most one each. MPI knows the addresses: a deque and a unique_ptr keep them.
    std::vector<std::unique_ptr<Transfer>> sends;
    std::vector<std::uint32_t> sending;
    std::deque<std::unique_ptr<Transfer>> receipts;
    std::vector<std::unique_ptr<Transfer>> given_up;

    void post_ahead() {
        ahead->request = MPI_REQUEST_NULL;
        MPI_Irecv(
            ahead->bytes.data(),
            as_int(ahead->bytes.size()),
            MPI_BYTE,
            MPI_ANY_SOURCE,
            kTag,
            MPI_COMM_WORLD,
            &ahead->request
        );
    }

    std::optional<Arrival> next_ahead() {
        int done = 0;
        MPI_Status status{};
        status.MPI_SOURCE = MPI_ANY_SOURCE;
        const int code = MPI_Test(&ahead->request, &done, &status);
        // A receipt that could not be posted is no request: it is done, and from nobody.
        if ((code == MPI_SUCCESS && done == 0) || status.MPI_SOURCE < 0) {
            return std::nullopt;
        }
        Arrival arrival;
        arrival.from = static_cast<std::uint32_t>(status.MPI_SOURCE);
        arrival.too_long = code != MPI_SUCCESS;
        int count = 0;
        if (code == MPI_SUCCESS && MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS) {
            arrival.bytes.assign(ahead->bytes, 0, static_cast<std::size_t>(count));
        }
        post_ahead();
        return arrival;
    }

    void probe() {
        int there = 0;
        MPI_Status status{};
        if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS ||
            there == 0) {
            return;
        }
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        auto receipt = std::make_unique<Transfer>();
        receipt->rank = static_cast<std::uint32_t>(status.MPI_SOURCE);
        receipt->since = std::chrono::steady_clock::now();
        // What is longer is cut off, with an error.
        receipt->bytes.resize(std::min(static_cast<std::size_t>(count), longest_frame));
        const int code = MPI_Irecv(
            receipt->bytes.data(),
            as_int(receipt->bytes.size()),
            MPI_BYTE,
            status.MPI_SOURCE,
            kTag,
            MPI_COMM_WORLD,
            &receipt->request
        );
        if (code == MPI_SUCCESS) {
            receipts.push_back(std::move(receipt));
        }
    }
};

MpiWire::MpiWire(std::uint32_t size, std::size_t longest_frame, bool post_ahead)
    : state_(std::make_unique<State>()) {
    state_->longest_frame = longest_frame;
    state_->sends.resize(size);
    if (post_ahead) {
        state_->ahead = std::make_unique<Transfer>();
        state_->ahead->bytes.resize(longest_frame);
        state_->post_ahead();
    }
}

MpiWire::~MpiWire() {
    // MPI may write to a buffer until the process is gone.
    for (auto* list : {&state_->sends, &state_->given_up}) {
        for (std::unique_ptr<Transfer>& transfer : *list) {
            static_cast<void>(transfer.release());
        }
    }
    for (std::unique_ptr<Transfer>& receipt : state_->receipts) {
        static_cast<void>(receipt.release());
    }
    static_cast<void>(state_->ahead.release());
}

bool MpiWire::busy(std::uint32_t to) {
    std::unique_ptr<Transfer>& send = state_->sends[to];
    if (!send) {
        return false;
    }
    int done = 0;
    if (MPI_Test(&send->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
        return true;
    }
    send.reset();
    std::erase(state_->sending, to);
    return false;
}

bool MpiWire::unfinished(std::uint32_t to) const {
    return state_->sends[to] != nullptr;
}

std::span<const std::uint32_t> MpiWire::sending() const {
    return state_->sending;
}

Status MpiWire::send(std::uint32_t to, std::string frame) {
    check(!state_->sends[to], "one frame at a time is under way inside MPI");
    auto send = std::make_unique<Transfer>();
    send->rank = to;
    send->bytes = std::move(frame);
    send->since = std::chrono::steady_clock::now();
    const int code = MPI_Isend(
        send->bytes.data(),
        as_int(send->bytes.size()),
        MPI_BYTE,
        static_cast<int>(to),
        kTag,
        MPI_COMM_WORLD,
        &send->request
    );
    if (code != MPI_SUCCESS) {
        return Error{ErrorCode::System, "MPI can't send to it: " + error_text(code)};
    }
    state_->sends[to] = std::move(send);
    state_->sending.push_back(to);
    busy(to);
    return Ok{};
}

std::optional<MpiWire::Arrival> MpiWire::next() {
    if (state_->ahead) {
        return state_->next_ahead();
    }
    state_->probe();
    std::set<std::uint32_t> held;
    for (auto place = state_->receipts.begin(); place != state_->receipts.end(); ++place) {
        Transfer& receipt = **place;
        if (held.count(receipt.rank) != 0) {
            continue;
        }
        int done = 0;
        const int code = MPI_Test(&receipt.request, &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && done == 0) {
            held.insert(receipt.rank);
            continue;
        }
        Arrival arrival{receipt.rank, std::move(receipt.bytes), code != MPI_SUCCESS};
        state_->receipts.erase(place);
        return arrival;
    }
    return std::nullopt;
}

std::optional<Duration> MpiWire::oldest_unfinished() const {
    std::optional<std::chrono::steady_clock::time_point> oldest;
    const auto look_at = [&oldest](const Transfer& transfer) {
        oldest = oldest ? std::min(*oldest, transfer.since) : transfer.since;
    };
    for (const std::uint32_t rank : state_->sending) {
        look_at(*state_->sends[rank]);
    }
    for (const std::unique_ptr<Transfer>& receipt : state_->receipts) {
        look_at(*receipt);
    }
    if (!oldest) {
        return std::nullopt;
    }
    return std::chrono::steady_clock::now() - *oldest;
}

void MpiWire::give_up(std::uint32_t rank) {
    if (state_->sends[rank]) {
        state_->given_up.push_back(std::move(state_->sends[rank]));
        std::erase(state_->sending, rank);
    }
    for (std::unique_ptr<Transfer>& receipt : state_->receipts) {
        if (receipt->rank == rank) {
            state_->given_up.push_back(std::move(receipt));
        }
    }
    std::erase(state_->receipts, nullptr);
}

void MpiWire::close() {
    if (!state_->ahead || state_->ahead->request == MPI_REQUEST_NULL) {
        return;
    }
    // What nobody sent to is cancelled at once; what was received meanwhile is done.
    MPI_Cancel(&state_->ahead->request);
    MPI_Wait(&state_->ahead->request, MPI_STATUS_IGNORE);
}

}  // namespace muster

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
