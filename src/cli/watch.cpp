// SPDX-License-Identifier: Apache-2.0

#include "cli/watch.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/text_table.hpp"
#include "head/trial.hpp"

namespace muster {
namespace {

constexpr std::string_view kEraseLine = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

std::string prefix(NoteLevel level) {
    switch (level) {
        case NoteLevel::Info:
            return "";
        case NoteLevel::Warning:
            return "warning: ";
        case NoteLevel::Error:
            return "error: ";
    }
    return "";
}

/// Notes may carry a trial's last words over several lines: each line is made harmless by itself.
std::string printable(std::string_view text) {
    std::string clean;
    while (true) {
        const std::size_t end = text.find('\n');
        clean += fit(text.substr(0, end), 1000);
        if (end == std::string_view::npos) {
            return clean;
        }
        clean += "\n    ";
        text.remove_prefix(end + 1);
    }
}

/// What to say when a trial ended; empty for one that just went well.
std::string ending_text(const Head& head, TrialId id) {
    const Trial& trial = *head.trial(id);
    if (trial.state != TrialState::Failed) {
        return "";
    }
    const std::string config = to_text(trial.config);
    return printable(fmt::format(
        "trial {} failed: {}{}",
        to_string(id),
        trial.progress->reason,
        config.empty() ? "" : "\n  config: " + config
    ));
}

void measure_terminal(int terminal, ProgressOptions& options) {
    winsize size{};
    if (::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        options.width = size.ws_col;
        options.height = size.ws_row;
    }
}

void begin(ProgressOptions& options, bool& began, const Head& head, TimePoint now) {
    if (!std::exchange(began, true)) {
        options.began = now;
        options.done_before = head.summary().done();
    }
}

}  // namespace

LiveTable::LiveTable(int terminal, ProgressOptions options)
    : terminal_(terminal),
      output_(terminal),
      options_(std::move(options)) {}

void LiveTable::on_progress(const Head& head, TimePoint now) {
    begin(options_, began_, head, now);
    if (output_.busy()) {
        // The newest table is shown once the terminal takes something again.
        return;
    }
    measure_terminal(terminal_, options_);
    std::vector<std::string> frame = progress_frame(head, options_, now);
    if (frame == frame_ && drawn_ > 0) {
        return;
    }
    frame_ = std::move(frame);
    rewrite("");
}

void LiveTable::on_note(NoteLevel level, const std::string& text) {
    rewrite(prefix(level) + printable(text) + "\n");
}

void LiveTable::on_trial_ended(const Head& head, TrialId trial, TimePoint now) {
    begin(options_, began_, head, now);
    const std::string text = ending_text(head, trial);
    if (!text.empty()) {
        on_note(NoteLevel::Info, text);
    }
}

void LiveTable::rewrite(const std::string& above) {
    std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A\r", drawn_) : "";
    std::string lines = above;
    for (const std::string& line : frame_) {
        lines += line + "\n";
    }
    // Each line is written over the old one: clearing first would flicker, and some terminals keep
    // what is cleared in their history.
    for (const char letter : lines) {
        text += letter == '\n' ? std::string(kEraseLine) + "\n" : std::string(1, letter);
    }
    text += kEraseBelow;
    if (output_.write(text)) {
        drawn_ = frame_.size();
    }
}

LogLines::LogLines(int log, ProgressOptions options) : output_(log), options_(std::move(options)) {}

void LogLines::on_progress(const Head& head, TimePoint now) {
    begin(options_, began_, head, now);
    // Before the first trial there is nothing to follow, and there may never be.
    if (now < next_line_ || head.trial_count() == 0) {
        return;
    }
    std::string line = progress_line(head, options_);
    if (line == last_line_) {
        return;
    }
    last_line_ = std::move(line);
    next_line_ = now + std::chrono::seconds{1};
    write(fmt::format("{:>7}  {}\n", format_duration(now - options_.began), fit(last_line_, 1000)));
}

void LogLines::on_note(NoteLevel level, const std::string& text) {
    write(prefix(level) + printable(text) + "\n");
}

void LogLines::write(const std::string& lines) {
    const std::string gap =
        left_out_ == 0 ? "" : fmt::format("({} messages left out: nobody read)\n", left_out_);
    left_out_ = output_.write(gap + lines) ? 0 : left_out_ + 1;
}

void LogLines::on_trial_ended(const Head& head, TrialId trial, TimePoint now) {
    begin(options_, began_, head, now);
    const std::string text = ending_text(head, trial);
    if (!text.empty()) {
        on_note(NoteLevel::Info, text);
    }
}

std::unique_ptr<Observer> make_observer(int out, ProgressOptions options, bool plain) {
    // Nobody else touches the environment: the run has not begun and there is one thread.
    const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
    const bool can_move = term != nullptr && std::string_view(term) != "dumb";
    if (!plain && can_move && ::isatty(out) == 1) {
        return std::make_unique<LiveTable>(out, std::move(options));
    }
    return std::make_unique<LogLines>(out, std::move(options));
}

}  // namespace muster
