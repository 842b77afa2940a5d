// SPDX-License-Identifier: Apache-2.0

#include "protocol/outcome.hpp"

#include <cstring>

#include <fmt/format.h>

namespace muster {
namespace {

std::string with_detail(const std::string& text, const std::string& detail) {
    return detail.empty() ? text : text + ": " + detail;
}

std::string signal_name(int number) {
    const char* name = sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number)
                           : fmt::format("signal {} (SIG{})", number, name);
}

}  // namespace

std::string to_string(const Outcome& outcome) {
    switch (outcome.cause) {
        case EndCause::Exited:
            return with_detail(fmt::format("exit code {}", outcome.code), outcome.detail);
        case EndCause::Signalled:
            return with_detail(signal_name(outcome.code), outcome.detail);
        case EndCause::SpawnFailed:
            return with_detail("could not start", outcome.detail);
        case EndCause::MemoryLimit:
            return with_detail("memory", outcome.detail);
        case EndCause::TimeLimit:
            return with_detail("time limit", outcome.detail);
        case EndCause::ReportTimeout:
            return with_detail("report timeout", outcome.detail);
        case EndCause::Stopped:
            return with_detail("stopped", outcome.detail);
        case EndCause::Lost:
            return with_detail("lost", outcome.detail);
    }
    return "unknown";
}

}  // namespace muster
