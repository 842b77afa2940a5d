// SPDX-License-Identifier: Apache-2.0
//
// placeholder - templates of commands, files and variables: "--lr={lr}" and what is filled in.
//
// A placeholder is `{key}`, `{group/key}` or `{muster.NAME}` with one of muster's names; `{{` and
// `}}` are braces. Every other brace is an error, so that nothing is passed on half filled in.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/config.hpp"
#include "muster/error.hpp"

namespace muster {

/// "muster.trial_id", …: every name that is no key of the config.
const std::vector<std::string>& muster_placeholders();

/// What placeholders stand for in one attempt.
struct PlaceholderValues {
    const Config* config = nullptr;
    std::string trial_id;
    std::string trial_dir;
    /// The directory to resume from; empty when there is none.
    std::string checkpoint;
    /// Amounts, "2" or "0.5".
    std::string cores;
    std::string gpus;
};

enum class Quoting {
    /// For argument vectors, variables and files: a value as it is.
    None,
    /// For a line of /bin/sh: a value is one word, in single quotes unless it needs none.
    Shell,
};

/// Refuses a template with a name that is neither in `keys` nor muster's, a brace that belongs to
/// no placeholder, or, for a shell line, a placeholder inside quotes (its value brings its own).
/// Errors: InvalidInput; the message says what and at which character (from 1), and what would be
/// right.
Status check_placeholders(
    std::string_view text,
    const std::vector<std::string>& keys,
    Quoting quoting = Quoting::None
);

/// Fills in `text`. A key without a value (its `when` does not hold) becomes empty text, the word
/// '' in a shell line.
/// Errors: InvalidInput, for what check_placeholders() would have refused, unknown keys aside.
Result<std::string>
expand(std::string_view text, const PlaceholderValues& values, Quoting quoting = Quoting::None);

/// Whether `text` holds the placeholder `{name}`: mentions("{muster.trial_dir}/x",
/// "muster.trial_dir").
bool mentions(std::string_view text, std::string_view name);

/// `text` as one word for /bin/sh.
std::string shell_quoted(std::string_view text);

}  // namespace muster
