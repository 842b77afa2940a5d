// SPDX-License-Identifier: Apache-2.0

#include "cli/sign_of_life.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "launch/exit_line.hpp"

namespace muster {
namespace {

constexpr std::chrono::seconds kOften{10};

class LivingObserver : public Observer {
  public:
    LivingObserver(std::unique_ptr<Observer> observer, Duration patience)
        : observer_(std::move(observer)),
          patience_(patience) {}

    void on_progress(const Head& head, TimePoint now) override {
        if (!said_at_ || now - *said_at_ >= std::min<Duration>(kOften, patience_ / 4)) {
            announce_alive(std::chrono::ceil<std::chrono::seconds>(patience_));
            said_at_ = now;
        }
        observer_->on_progress(head, now);
    }
    void on_note(NoteLevel level, const std::string& text) override {
        observer_->on_note(level, text);
    }
    void on_trial_ended(const Head& head, TrialId trial, TimePoint now) override {
        observer_->on_trial_ended(head, trial, now);
    }
    void on_wait() override {
        announce_alive(std::chrono::ceil<std::chrono::seconds>(patience_));
        observer_->on_wait();
    }

  private:
    std::unique_ptr<Observer> observer_;
    Duration patience_;
    std::optional<TimePoint> said_at_;
};

}  // namespace

std::unique_ptr<Observer> with_sign_of_life(std::unique_ptr<Observer> observer, Duration patience) {
    if (launch_token().empty()) {
        return observer;
    }
    return std::make_unique<LivingObserver>(std::move(observer), patience);
}

}  // namespace muster
