// SPDX-License-Identifier: Apache-2.0
//
// exit_line - how rank 0 tells whoever launched it how the run ended, and is told of signals.
// mpirun's exit code is 0 whatever happened when it lets ranks live on, srun's is that of a rank
// that was killed, and rank 0 may be on another host than the launcher: so it says its exit code in
// a line on stderr that `muster launch` takes out again.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The environment variable with the launch's token. It must not reach trials.
inline constexpr std::string_view kLaunchToken = "MUSTER_LAUNCH_TOKEN";

/// Under `muster launch` rank 0 reads signals from stdin, which mpirun and srun pass on to it: the
/// signals themselves would go to all ranks, and from srun to every process of the trials too.
std::string signal_line(std::string_view token, int number);
/// The signal that a line names; nothing when it is any other line.
std::optional<int> signal_of(std::string_view line, std::string_view token);

/// "80x24", set by `muster launch` when its own stdout is a terminal of that many columns and rows;
/// "none" when it is none.
/// Launchers give rank 0 a terminal of their own whether anybody sees it or not.
inline constexpr std::string_view kTerminal = "MUSTER_TERMINAL";

/// The token of the launch; empty when nobody reads the announcements.
std::string launch_token();

/// Says on stderr that rank 0 runs; nothing when nobody launched it so.
void announce_begin();
/// Says that rank 0 still runs, and that it is to be taken for lost when it has said nothing more
/// for `patience`: mpirun does not notice that its host is gone. Not said while stderr is full.
void announce_alive(std::chrono::seconds patience);
/// Says on stderr how the run ended. Only the first call counts.
void announce_exit_code(int code);

/// What every announcement begins with, and nothing else.
inline constexpr std::string_view kAnnouncement = "\x1emuster-";

struct Announcement {
    enum class Kind : std::uint8_t { Begin, Alive, End };
    Kind kind = Kind::Begin;
    /// Alive: the patience in seconds. End: the exit code.
    std::int64_t value = 0;

    friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// The line of an announcement, without its end.
std::string announcement_line(const Announcement& said, std::string_view token);
/// What a line says; nothing when it is any other line.
std::optional<Announcement> announcement_of(std::string_view line, std::string_view token);

}  // namespace muster
