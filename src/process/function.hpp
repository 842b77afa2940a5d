// SPDX-License-Identifier: Apache-2.0
//
// function - starts a function of this program as a process of its own, forked and not executed
// anew, so that it finds what the program had made.
//
// The new process is what a command would be: its own process group, only 0, 1 and 2 open, its own
// environment, no handler of signals or of atexit() that the program had set.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "process/child.hpp"

namespace muster {

struct TrialFunction {
    std::string name;
    // A function, since it is called and nothing needs to look inside.
    std::function<void()> run;
};

using TrialFunctions = std::vector<TrialFunction>;

/// nullptr when there is none of that name.
const TrialFunction* find_function(const TrialFunctions& functions, std::string_view name);

/// A page that a keeper shares with the process of its function, for the text of an exception.
class LastWords {
  public:
    LastWords();
    ~LastWords();
    LastWords(const LastWords&) = delete;
    LastWords& operator=(const LastWords&) = delete;

    void clear();
    /// Cut to what fits.
    void set(std::string_view text);
    /// Empty when nothing was set.
    std::string text() const;

  private:
    /// nullptr where the system gave none: then nothing is remembered.
    char* page_ = nullptr;
};

/// Starts `function` as start_child() starts `request.argv`, which is not looked at. An exception
/// ends the process with exit code 1, its text on stderr and in `last_words`.
ChildStart
start_function(const TrialFunction& function, const ChildRequest& request, LastWords& last_words);

}  // namespace muster
