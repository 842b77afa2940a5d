// SPDX-License-Identifier: Apache-2.0

#include "protocol/facts.hpp"

namespace muster {

std::string_view to_string(TrialState state) {
    switch (state) {
        case TrialState::Pending:
            return "Pending";
        case TrialState::Running:
            return "Running";
        case TrialState::Paused:
            return "Paused";
        case TrialState::Stopping:
            return "Stopping";
        case TrialState::Completed:
            return "Completed";
        case TrialState::Stopped:
            return "Stopped";
        case TrialState::Failed:
            return "Failed";
        case TrialState::Cancelled:
            return "Cancelled";
    }
    return "unknown";
}

bool is_final(TrialState state) {
    switch (state) {
        case TrialState::Pending:
        case TrialState::Running:
        case TrialState::Paused:
        case TrialState::Stopping:
            return false;
        case TrialState::Completed:
        case TrialState::Stopped:
        case TrialState::Failed:
        case TrialState::Cancelled:
            return true;
    }
    return false;
}

}  // namespace muster
