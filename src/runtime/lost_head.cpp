// SPDX-License-Identifier: Apache-2.0

#include "runtime/lost_head.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "slurm/requeue.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswerPatience = 30s;
/// Between two questions of one agent; a second more for each rank below it, so that those of a
/// large job do not fall upon the controller together.
constexpr Duration kInterval = 5s;
constexpr std::uint32_t kMostTurns = 300;
/// While there is nothing to ask.
constexpr Duration kLongestWait = 60s;

std::uint32_t max_requeues_of(const std::vector<std::string>& environment) {
    const std::string begin = std::string(kMaxRequeues) + "=";
    for (const std::string& entry : environment) {
        if (entry.starts_with(begin)) {
            return static_cast<std::uint32_t>(
                std::strtoul(entry.c_str() + begin.size(), nullptr, 10)
            );
        }
    }
    return 0;
}

}  // namespace

LostHead::LostHead(const std::vector<std::string>& environment, Duration lease, std::uint32_t rank)
    : job_(slurm_job_of(environment)),
      lease_(lease),
      interval_(kInterval + 1s * std::min(rank, kMostTurns)) {
    if (lease == Duration{0} || (job_ && job_->restarts >= max_requeues_of(environment))) {
        job_.reset();
    }
}

Duration LostHead::longest_wait(Duration boot) const {
    if (!job_) {
        return kLongestWait;
    }
    return (question_ ? question_->until() : ask_at_) - boot;
}

void LostHead::heard(Duration boot) {
    ask_at_ = boot + lease_ + interval_;
    question_.reset();
}

void LostHead::look(Duration boot) {
    if (!job_) {
        return;
    }
    if (question_) {
        if (std::optional<Result<std::string>> answer = question_->take(boot)) {
            question_.reset();
            ask_at_ = boot + interval_;
            if (answer->ok()) {
                take_answer(**answer, boot);
            }
        }
    } else if (ask_at_ <= boot) {
        ask(Asked::Job, show_job_command(*job_), boot);
    }
}

void LostHead::take_answer(const std::string& answer, Duration boot) {
    switch (asked_) {
        case Asked::Job: {
            const Result<JobRecord> record = parse_job_record(answer);
            if (record.ok() && is_this_incarnation(*record, *job_) && !record->batch_host.empty()) {
                ask(Asked::Node, {"scontrol", "show", "node", record->batch_host}, boot);
            }
            return;
        }
        case Asked::Node:
            if (is_node_down(answer)) {
                ask(Asked::Requeue, requeue_command(*job_), boot);
            }
            return;
        case Asked::Requeue:
            // Slurm ends this process now, or else it is asked once more.
            return;
    }
}

void LostHead::ask(Asked what, const std::vector<std::string>& words, Duration boot) {
    asked_ = what;
    Result<Question> question = Question::ask(words, boot + kAnswerPatience);
    if (question.ok()) {
        question_ = std::move(*question);
    } else {
        ask_at_ = boot + interval_;
    }
}

}  // namespace muster
