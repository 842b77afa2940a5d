// SPDX-License-Identifier: Apache-2.0
//
// planted_fault - mistakes that the simulation's own tests plant, to prove that it would catch
// them. Only in builds with MUSTER_PLANTED_FAULTS; elsewhere every site compiles to nothing.

#pragma once

#include <cstdint>

namespace muster {

enum class PlantedFault : std::uint8_t {
    None,
    /// An ended attempt keeps what it held.
    ResourcesNotReleased,
    /// A trial that is to run again is not put back into the queue.
    RequeueForgotten,
    /// A message of an attempt that is over is taken for one of the present attempt.
    StaleEndedAccepted,
    /// A trial is started a second time while it runs.
    DoubleStart,
    /// A lost node counts as the trial's failure.
    LostNodeIsFailure,
    /// The agent does not carry out Stop.
    StopIgnored,
    /// A report changes the trial but is not kept.
    ResultDropped,
    /// Only the head of the queue is tried: what fits behind it waits.
    BackfillLost,
    /// A device's shares are not added up.
    DeviceShareIgnored,
    /// The shared cores of running trials are not changed when the set changes.
    RemaskForgotten,
    /// Commands go out before the facts that they wait for are on disk.
    DurabilityIgnored,
    /// One trial more than max_concurrent_trials runs.
    OneTooMany,
    /// The agent does not end a member that runs into a limit.
    LimitIgnored,
    /// A report that comes too fast is held back and never passed on.
    HeldReportLost,
    /// The agent goes on although its lease has run out.
    LeaseIgnored,
    /// A trial is told that its checkpoint is safe before the fact is on disk.
    CheckpointSafeTooEarly,
    /// A trial that runs again does not go on from its checkpoint.
    CheckpointForgotten,
    /// A checkpoint's files are removed while the journal still has it.
    CheckpointRemovedTooEarly,
    /// Trials start however little time is left.
    EndIgnored,
    /// Trials are not warned of the end.
    WarningForgotten,
};

#ifdef MUSTER_PLANTED_FAULTS

// One for the process, set by a test only: the sites are deep inside code that knows no tests.
inline PlantedFault planted_fault = PlantedFault::None;

inline bool planted(PlantedFault fault) {
    return planted_fault == fault;
}

#else

constexpr bool planted(PlantedFault /*fault*/) {
    return false;
}

#endif

}  // namespace muster
