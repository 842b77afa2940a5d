// SPDX-License-Identifier: Apache-2.0
//
// question - something asked of a command of Slurm's, whose answer may be long in coming: a child
// process, read without ever waiting for it. A controller that is away keeps such a command for
// minutes; it is killed before that.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "posix/unique_fd.hpp"

namespace muster {

class Question {
  public:
    /// Starts `words`, whose program is looked up on PATH, to be answered by `until` on the clock
    /// that take() is given.
    /// Errors: NotFound, when there is no such program; System.
    static Result<Question> ask(const std::vector<std::string>& words, Duration until);

    /// Ends it, when it has no answer yet.
    ~Question();
    Question(Question&& other) noexcept;
    Question& operator=(Question&& other) noexcept;
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;

    /// Readable when take() is worth a call.
    int fd() const { return output_ ? output_.get() : process_.get(); }
    Duration until() const { return until_; }

    /// What it printed, once it has ended well; or, naming the command, why there is no answer.
    /// To be called when fd() is readable and when the time is over. Nothing: no answer yet.
    std::optional<Result<std::string>> take(Duration now);

  private:
    Question(std::string name, Duration until) : name_(std::move(name)), until_(until) {}

    void read();
    void end();

    std::string name_;
    Duration until_;
    pid_t pid_ = 0;
    /// Readable when it has ended.
    UniqueFd process_;
    /// Until its end.
    UniqueFd output_;
    std::string text_;
};

}  // namespace muster
