// SPDX-License-Identifier: Apache-2.0
//
// overloaded - one visitor out of several lambdas; a missing alternative does not compile.

#pragma once

namespace muster {

template <class... Lambdas>
struct Overloaded : Lambdas... {
    using Lambdas::operator()...;
};
// clang 14 (the lint) does not deduce aggregates by itself.
template <class... Lambdas>
Overloaded(Lambdas...) -> Overloaded<Lambdas...>;

}  // namespace muster
