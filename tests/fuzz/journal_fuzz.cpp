// SPDX-License-Identifier: Apache-2.0
//
// journal_fuzz - a journal: the lines of its records, without their checksums, which are put before
// them here; a line that begins with '!' stays as it is. "%%" begins another segment: those of the
// state and those of the results in turn. Whatever it holds, a head is restored from it, its state
// is consistent, the experiment goes on to its end, and tidying up loses nothing.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "head/head.hpp"
#include "head/trial.hpp"
#include "journal/names.hpp"
#include "journal/reader.hpp"
#include "journal/record.hpp"
#include "journal/segments.hpp"
#include "journal/tidy.hpp"
#include "runtime/restore_head.hpp"
#include "search/searcher.hpp"
#include "support/head_case.hpp"

namespace muster::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTrials = 8;

ExperimentSpec spec() {
    ExperimentSpec spec;
    spec.name = "fuzz";
    spec.objective = ObjectiveSpec{"accuracy", Mode::Max};
    spec.num_samples = kTrials;
    spec.space.parameters = {{"lr", RealDomain{.lower = 0, .upper = 1}, {}}};
    return spec;
}

void write_segments(const std::string& directory, std::string_view input) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    std::uint64_t number = 1;
    std::string_view stem = journal::kStateStem;
    for (const std::string_view piece : pieces_of(input)) {
        std::ofstream file(directory + "/" + journal::segment_name(stem, number), std::ios::binary);
        for (const std::string_view line : lines_of(piece)) {
            if (!line.empty() && line.front() == '!') {
                file << line.substr(1) << '\n';
            } else {
                file << fmt::format("{:08x} ", journal::checksum(line)) << line << '\n';
            }
        }
        number += stem == journal::kResultsStem ? 1U : 0U;
        stem = stem == journal::kStateStem ? journal::kResultsStem : journal::kStateStem;
    }
}

struct Seen {
    std::vector<std::string> trials;
    std::vector<std::string> problems;
};

void check_consistent(const Head& head) {
    const HeadSummary summary = head.summary();
    check(summary.running + summary.stopping == 0, "nothing runs in what was read");
    check(head.active_trials().empty(), "nothing holds resources");
    std::uint64_t finals = 0;
    for (std::uint32_t id = 0; id < head.trial_count(); ++id) {
        const Trial* trial = head.trial(TrialId{id});
        check(trial != nullptr, "trials are numbered without a gap");
        check(
            trial->state == TrialState::Pending || trial->state == TrialState::Paused ||
                is_final(trial->state),
            "a trial waits or is over"
        );
        check(!head.explain(TrialId{id}, TimePoint{}).empty(), "each can be explained");
        finals += is_final(trial->state) ? 1U : 0U;
    }
    check(summary.done() == finals, "the summary counts what is there");
}

std::string words_of(const Trial& trial) {
    std::string words = fmt::format("{} {}", to_string(trial.state), to_json(trial.config));
    if (trial.progress != nullptr) {
        words += fmt::format(
            " results {} failures {} attempts {} '{}'",
            trial.progress->results,
            trial.progress->failures,
            trial.progress->attempts,
            trial.progress->reason
        );
    }
    return words;
}

/// Nothing when the journal as a whole is refused.
std::optional<Seen> restore(const std::string& directory, Head& head) {
    static const BasicSearcher searcher =
        BasicSearcher::make(spec().space, spec().search, kTrials, 7).value();
    Result<Restored> restored = restore_head(directory, head, &searcher);
    if (!restored.ok()) {
        check(!restored.error().message.empty(), "a refusal says why");
        return std::nullopt;
    }
    check_consistent(head);
    Seen seen{{}, std::move(restored->problems)};
    for (std::uint32_t id = 0; id < head.trial_count(); ++id) {
        seen.trials.push_back(words_of(*head.trial(TrialId{id})));
    }
    return seen;
}

void run_to_the_end(const std::string& directory) {
    testing::HeadCase run(spec(), 0);
    if (!restore(directory, run.head)) {
        return;
    }
    run.begin_with({testing::make_node("n0", 4)});
    for (std::uint32_t round = 0; round <= run.head.trial_count(); ++round) {
        for (const TrialId trial : run.head.active_trials()) {
            run.trial_ends(trial.value);
        }
    }
    const HeadSummary summary = run.head.summary();
    check(summary.running + summary.stopping == 0, "the experiment comes to its end");
    check(summary.pending + summary.paused == 0, "no trial is left behind");
}

}  // namespace

void try_input(std::string_view input) {
    static const ScratchDir scratch;
    const std::string directory = scratch.path() + "/journal";
    write_segments(directory, input);

    Head head(spec(), RunOptions{}, kTrials);
    const std::optional<Seen> before = restore(directory, head);
    run_to_the_end(directory);
    (void)read_results(directory, TrialId{1}, [](const ResultReported&, TimePoint) {});

    const std::atomic<bool> stop = false;
    (void)JournalTidier(directory, stop, 1).tidy();
    Head tidied(spec(), RunOptions{}, kTrials);
    const std::optional<Seen> after = restore(directory, tidied);
    check(before.has_value() == after.has_value(), "what could be read can still be");
    if (before && before->problems.empty()) {
        check(after->trials == before->trials, "tidying up loses nothing");
    }
}

}  // namespace muster::fuzz
