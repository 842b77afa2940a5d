// SPDX-License-Identifier: Apache-2.0
//
// consumer - asks the installed library for something that needs its compiled parts.

#include <iostream>

#include <muster/config.hpp>
#include <muster/experiment.hpp>
#include <muster/resources.hpp>

int main() {
    const auto config = muster::Config::from_members({{"lr", 0.1}, {"layers", 3}});
    const auto memory = muster::parse_bytes("2GiB");
    if (!memory) {
        std::cerr << memory.error().message << "\n";
        return 1;
    }
    const muster::ResourceSet request{
        .cpu = muster::Amount::whole(2), .gpu = {}, .memory_bytes = *memory, .custom = {}};
    std::cout << muster::to_json(config) << " " << muster::to_string(request) << "\n";
    return 0;
}
