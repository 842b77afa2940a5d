// SPDX-License-Identifier: Apache-2.0

#include "transport/in_process_network.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.hpp"
#include "posix/unique_fd.hpp"
#include "transport/linked_transport.hpp"

namespace muster {
namespace {

/// A frame, or, without one, the end of the connection.
struct Delivery {
    std::uint32_t from = 0;
    std::optional<std::string> frame;
};

}  // namespace

struct InProcessNetwork::Shared {
    struct Mailbox {
        std::deque<Delivery> deliveries;
        /// Readable while there may be deliveries.
        UniqueFd bell;
        bool dead = false;
    };

    void deliver(std::uint32_t from, std::uint32_t to, std::optional<std::string> frame) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!mailboxes[from].dead && !mailboxes[to].dead) {
            put(from, to, std::move(frame));
        }
    }

    void put(std::uint32_t from, std::uint32_t to, std::optional<std::string> frame) {
        mailboxes[to].deliveries.push_back({from, std::move(frame)});
        const std::uint64_t one = 1;
        check(::write(mailboxes[to].bell.get(), &one, sizeof one) == sizeof one, "a bell rings");
    }

    std::mutex mutex;
    std::vector<Mailbox> mailboxes;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
};

class InProcessNetwork::Endpoint final : public LinkedTransport {
  public:
    Endpoint(Shared& shared, std::uint32_t rank, std::uint32_t size)
        : LinkedTransport(rank, size),
          shared_(shared) {}

    void add_poll_fds(std::vector<pollfd>& fds) override {
        fds.push_back({shared_.mailboxes[rank()].bell.get(), POLLIN, 0});
    }
    void polled(std::span<const pollfd> fds) override {
        check(fds.size() == 1, "what was added to a poll comes back");
    }
    Duration longest_wait() const override { return links_can_wait(); }

  protected:
    bool ready(std::uint32_t /*to*/) override { return true; }
    bool blocked(std::uint32_t /*to*/) const override { return false; }

    void hand_over(std::uint32_t to, std::string frame) override {
        shared_.deliver(rank(), to, std::move(frame));
    }

    void fetch() override {
        for (const Delivery& delivery : collect()) {
            if (delivery.frame) {
                on_frame(delivery.from, *delivery.frame);
            } else {
                break_pair(delivery.from, "its connection ended");
            }
        }
    }

  private:
    std::deque<Delivery> collect() {
        const std::lock_guard<std::mutex> lock(shared_.mutex);
        Shared::Mailbox& mailbox = shared_.mailboxes[rank()];
        if (!mailbox.deliveries.empty()) {
            std::uint64_t rung = 0;
            const ssize_t got = ::read(mailbox.bell.get(), &rung, sizeof rung);
            check(got == sizeof rung, "what was delivered rang the bell");
        }
        return std::exchange(mailbox.deliveries, {});
    }

    Shared& shared_;
};

InProcessNetwork::InProcessNetwork(std::uint32_t size) : shared_(std::make_unique<Shared>()) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        Shared::Mailbox& mailbox = shared_->mailboxes.emplace_back();
        mailbox.bell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        check(static_cast<bool>(mailbox.bell), "there is a descriptor for every endpoint");
        shared_->endpoints.push_back(std::make_unique<Endpoint>(*shared_, rank, size));
    }
}

InProcessNetwork::~InProcessNetwork() = default;

Transport& InProcessNetwork::endpoint(std::uint32_t rank) {
    return *shared_->endpoints[rank];
}

void InProcessNetwork::break_endpoint(std::uint32_t rank) {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (std::exchange(shared_->mailboxes[rank].dead, true)) {
        return;
    }
    for (std::uint32_t peer = 0; peer < shared_->mailboxes.size(); ++peer) {
        if (peer != rank && !shared_->mailboxes[peer].dead) {
            shared_->put(rank, peer, std::nullopt);
        }
    }
}

void InProcessNetwork::inject(std::uint32_t from, std::uint32_t to, std::string bytes) {
    shared_->deliver(from, to, std::move(bytes));
}

}  // namespace muster
