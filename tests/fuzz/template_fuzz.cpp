// SPDX-License-Identifier: Apache-2.0
//
// template_fuzz - a template of a command. One that was accepted can be filled in with any config,
// and values in a shell line stay words.

#include <string>
#include <vector>

#include "muster/config.hpp"

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "model/placeholder.hpp"

namespace muster::fuzz {
namespace {

Config config() {
    return Config::from_members(
        {{"lr", 1e-05},
         {"augment/flip", true},
         {"learning rate", "it's \"$X\"\n"},
         {"sizes", Value::List{1, 2}}}
    );
}

void try_template(std::string_view text, Quoting quoting) {
    static const Config kConfig = config();
    static const std::vector<std::string> kKeys{
        "lr", "augment/flip", "learning rate", "sizes", "absent"};
    const PlaceholderValues values{&kConfig, "00042", "/r/a b/00042", "", "2", "0.5"};
    const Status status = check_placeholders(text, kKeys, quoting);
    const Result<std::string> filled = expand(text, values, quoting);
    if (status.ok()) {
        check(filled.ok(), "what was accepted can be filled in");
        check(
            text.find_first_of("{}") != std::string_view::npos || *filled == text,
            "text without braces stays as it is"
        );
    } else {
        check(status.error().code == ErrorCode::InvalidInput, "a template is refused as input");
    }
}

}  // namespace

void try_input(std::string_view input) {
    try_template(input, Quoting::None);
    try_template(input, Quoting::Shell);
    for (const std::string& name : muster_placeholders()) {
        const bool has = mentions(input, name);
        check(!has || input.find(name) != std::string_view::npos, "what is mentioned is there");
    }
    const std::string quoted = shell_quoted(input);
    check(!quoted.empty(), "nothing at all would be no word");
    check(
        quoted == input || (quoted.front() == '\'' && quoted.back() == '\''),
        "a word stays as it is or is quoted"
    );
}

}  // namespace muster::fuzz
