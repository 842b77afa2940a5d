// SPDX-License-Identifier: Apache-2.0
//
// lost_head - what an agent in a Slurm job does when its head is silent: asks Slurm whether the
// node of the job's script is down, and if so puts the job back into the queue. With --no-kill
// Slurm itself does nothing then: the job would stand still until its time is over.
//
// It never does so on the agent's word alone: a network that is cut between two nodes must not end
// a job in which the others work. Nor for a job that was begun anew elsewhere meanwhile.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "slurm/job.hpp"
#include "slurm/question.hpp"

namespace muster {

class LostHead {
  public:
    /// `environment`: says the job, and how often it may be put back; else nothing is ever asked.
    /// `lease`: the silence that is worth a question. `rank`: agents ask one after another.
    LostHead(const std::vector<std::string>& environment, Duration lease, std::uint32_t rank);

    /// Readable when look() is worth a call; -1 while nothing is awaited.
    int fd() const { return question_ ? question_->fd() : -1; }
    /// How long until look() is to be called in any case.
    Duration longest_wait(Duration boot) const;

    /// The head has spoken. Times are those of WorldTime::boot.
    void heard(Duration boot);
    void look(Duration boot);

  private:
    enum class Asked { Job, Node, Requeue };

    void ask(Asked what, const std::vector<std::string>& words, Duration boot);
    void take_answer(const std::string& answer, Duration boot);

    std::optional<SlurmJob> job_;
    Duration lease_;
    Duration interval_;
    /// When Slurm is asked next, unless the head speaks.
    Duration ask_at_{0};
    std::optional<Question> question_;
    Asked asked_ = Asked::Job;
};

}  // namespace muster
