// SPDX-License-Identifier: Apache-2.0

#include "agent/lease.hpp"

#include <algorithm>

#include "base/planted_fault.hpp"

namespace muster {

Lease::Lease(Duration interval, Duration length)
    : interval_(interval),
      length_(interval > Duration{0} ? length : Duration{0}) {}

void Lease::hello(TimePoint now) {
    sent_.clear();
    answered_ = real(now);
    runs_ = false;
    next_ = interval_ > Duration{0} ? now + interval_ : kNever;
}

void Lease::begin() {
    runs_ = has_length();
}

void Lease::answered(std::uint64_t number) {
    while (!sent_.empty() && sent_.front().number <= number) {
        if (sent_.front().number == number) {
            answered_ = sent_.front().at;
        }
        sent_.pop_front();
    }
}

void Lease::end() {
    sent_.clear();
    runs_ = false;
    next_ = kNever;
}

std::optional<Heartbeat> Lease::next(TimePoint now) {
    if (now < next_) {
        return std::nullopt;
    }
    next_ = now + interval_;
    ++last_number_;
    if (has_length()) {
        sent_.push_back({last_number_, real(now)});
    }
    return Heartbeat{last_number_};
}

bool Lease::has_run_out(TimePoint now) const {
    return runs_ && !planted(PlantedFault::LeaseIgnored) && real(now) - answered_ >= length_;
}

TimePoint Lease::next_deadline() const {
    return runs_ ? std::min(next_, answered_ + length_ - stood_) : next_;
}

}  // namespace muster
