// SPDX-License-Identifier: Apache-2.0
//
// watch - the two ways to watch a run: a table rewritten in place on a terminal, and at most a line
// a second, only on change, anywhere else.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "cli/background_output.hpp"
#include "cli/progress.hpp"
#include "runtime/run_experiment.hpp"

namespace muster {

/// For a terminal. Notes and failures scroll away above the table.
class LiveTable final : public Observer {
  public:
    LiveTable(int terminal, ProgressOptions options);

    void on_progress(const Head& head, TimePoint now) override;
    void on_note(NoteLevel level, const std::string& text) override;
    void on_trial_ended(const Head& head, TrialId trial, TimePoint now) override;

  private:
    /// Writes `above`, which stays, and the table below it, over the table that is there.
    void rewrite(const std::string& above);

    int terminal_;
    BackgroundOutput output_;
    ProgressOptions options_;
    bool began_ = false;
    std::vector<std::string> frame_;
    /// Lines of the table that are on the screen now.
    std::size_t drawn_ = 0;
};

/// For a log.
class LogLines final : public Observer {
  public:
    LogLines(int log, ProgressOptions options);

    void on_progress(const Head& head, TimePoint now) override;
    void on_note(NoteLevel level, const std::string& text) override;
    void on_trial_ended(const Head& head, TrialId trial, TimePoint now) override;

  private:
    void write(const std::string& lines);

    BackgroundOutput output_;
    /// Notes and lines that nobody took.
    std::size_t left_out_ = 0;
    ProgressOptions options_;
    bool began_ = false;
    std::string last_line_;
    TimePoint next_line_;
};

/// The one for the descriptor `out`: LiveTable when it is a terminal that can move its cursor (and
/// `plain` is not asked for), LogLines otherwise.
std::unique_ptr<Observer> make_observer(int out, ProgressOptions options, bool plain);

}  // namespace muster
