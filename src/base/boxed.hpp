// SPDX-License-Identifier: Apache-2.0
//
// boxed - a large value that costs a pointer where it is one of many alternatives.

#pragma once

#include <memory>
#include <utility>

namespace muster {

/// Holds a T that never changes, shared between copies; equal when what is held is.
template <class T>
class Boxed {
  public:
    Boxed() : Boxed(T{}) {}
    // Implicit, so that it is given as the T that it stands for.
    Boxed(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT

    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_.get(); }

    friend bool operator==(const Boxed& left, const Boxed& right) {
        return left.value_ == right.value_ || *left.value_ == *right.value_;
    }

  private:
    std::shared_ptr<const T> value_;
};

}  // namespace muster
