// SPDX-License-Identifier: Apache-2.0
//
// in_process_network - a Transport between endpoints of one process: what the MPI form does, with
// the same flow control, but without MPI. For tests.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/transport.hpp"

namespace muster {

class InProcessNetwork {
  public:
    explicit InProcessNetwork(std::uint32_t size);
    ~InProcessNetwork();
    InProcessNetwork(const InProcessNetwork&) = delete;
    InProcessNetwork& operator=(const InProcessNetwork&) = delete;

    /// Each endpoint belongs to one thread; different ones may belong to different threads.
    Transport& endpoint(std::uint32_t rank);

    /// As if the process of `rank` had died: all that it did not hand over yet is lost, and the
    /// others' connections to it end. Thread: any.
    void break_endpoint(std::uint32_t rank);

    /// Puts bytes that no Link made on their way, as from `from`. Thread: any.
    void inject(std::uint32_t from, std::uint32_t to, std::string bytes);

  private:
    struct Shared;
    class Endpoint;

    std::unique_ptr<Shared> shared_;
};

}  // namespace muster
