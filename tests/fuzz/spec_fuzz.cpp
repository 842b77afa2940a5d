// SPDX-License-Identifier: Apache-2.0
//
// spec_fuzz - a spec file, and after each "%%" one --set. Whatever it is, it is refused with a
// message or read; what was read can be written, read back the same, continued and sampled.

#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "fuzz_target.hpp"
#include "search/searcher.hpp"
#include "spec/cluster_file.hpp"
#include "spec/load_spec.hpp"
#include "spec/resolved_spec.hpp"

namespace muster::fuzz {
namespace {

void check_message(const Error& error) {
    check(!error.message.empty(), "a refusal says why");
    check(!find_not_utf8(error.message), "a message is text");
    check(error.message.size() < 20'000, "a message can be read");
}

void sample_some(const ExperimentSpec& spec) {
    Result<BasicSearcher> searcher =
        BasicSearcher::make(spec.space, spec.search, spec.num_samples, spec.seed);
    if (!searcher.ok()) {
        check_message(searcher.error());
        return;
    }
    const Result<Suggestion> suggestion = searcher->suggest(3);
    if (!suggestion.ok()) {
        check_message(suggestion.error());
        return;
    }
    check(suggestion->configs.size() <= 3, "no more configs than were asked for");
    for (std::size_t index = 0; index < suggestion->configs.size(); ++index) {
        const Result<Config> again = searcher->config_at(index);
        check(
            again.ok() && *again == suggestion->configs[index], "a config follows from its number"
        );
    }
}

}  // namespace

void try_input(std::string_view input) {
    const std::vector<std::string_view> pieces = pieces_of(input);
    const std::vector<std::string> sets(pieces.begin() + 1, pieces.end());
    const LoadOptions options{"/here"};

    const Result<std::vector<NodeInventory>> nodes = parse_cluster(pieces.front(), "cluster.yaml");
    if (!nodes.ok()) {
        check_message(nodes.error());
    }
    const Result<ExperimentSpec> spec = parse_spec(pieces.front(), "sweep.yaml", sets, options);
    if (!spec.ok()) {
        check_message(spec.error());
        return;
    }
    const std::string written = resolved_yaml(*spec);
    const Result<ExperimentSpec> again = parse_spec(written, "experiment.yaml", {}, {"/else"});
    check(again.ok(), "what was written can be read");
    check(resolved_yaml(*again) == written, "what was written reads back the same");
    check(compare_for_continue(*spec, *again).ok(), "an experiment can be continued unchanged");
    sample_some(*spec);
}

}  // namespace muster::fuzz
