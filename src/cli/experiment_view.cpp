// SPDX-License-Identifier: Apache-2.0

#include "cli/experiment_view.hpp"

#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "head/trial.hpp"
#include "journal/reader.hpp"
#include "runtime/restore_head.hpp"
#include "search/searcher.hpp"
#include "spec/load_spec.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

bool is_experiment(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path / "experiment.yaml", ignored);
}

Result<fs::path> find_directory(const std::string& directory) {
    const fs::path given(directory);
    const fs::path in_results = fs::path("results") / given;
    for (const fs::path& path : {given, in_results}) {
        if (is_experiment(path)) {
            std::error_code failed;
            const fs::path absolute = fs::absolute(path, failed).lexically_normal();
            return failed ? path : absolute;
        }
    }
    const std::string also =
        given.is_absolute() ? "" : fmt::format(", nor in {}", in_results.string());
    return Error{
        ErrorCode::NotFound,
        fmt::format(
            "{}: no experiment is there{}; name the directory that `muster run` printed (it holds "
            "experiment.yaml)",
            directory,
            also
        )};
}

}  // namespace

Result<ExperimentView> open_experiment(const std::string& directory) {
    Result<fs::path> path = find_directory(directory);
    if (!path) {
        return path.error();
    }
    Result<ExperimentSpec> spec = load_spec((*path / "experiment.yaml").string());
    if (!spec) {
        return spec.error();
    }
    ExperimentView view{.directory = path->string(), .spec = *spec, .head = nullptr};
    const Result<BasicSearcher> searcher =
        BasicSearcher::make(spec->space, spec->search, spec->num_samples, spec->seed);
    const std::optional<std::uint64_t> total = searcher ? searcher->total_trials() : std::nullopt;
    view.head = std::make_unique<Head>(*spec, RunOptions{}, total);
    const std::string journal = (*path / "journal").string();
    if (!has_journal(journal)) {
        return view;
    }
    Result<Restored> restored = restore_head(journal, *view.head, searcher ? &*searcher : nullptr);
    if (!restored) {
        return restored.error();
    }
    view.problems = std::move(restored->problems);
    view.nodes = std::move(restored->nodes);
    view.last = restored->last;
    return view;
}

Result<TrialId> find_trial(const ExperimentView& view, const std::string& text) {
    std::uint32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [parsed, failed] = std::from_chars(text.data(), end, value);
    if (text.empty() || failed != std::errc{} || parsed != end) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("'{}' is not a trial; write its number, such as 42 or 00042", text)};
    }
    if (view.head->trial(TrialId{value}) == nullptr) {
        return Error{
            ErrorCode::NotFound,
            fmt::format(
                "trial {} does not exist; {} has {} trials{}",
                to_string(TrialId{value}),
                view.spec.name,
                view.head->trial_count(),
                view.head->trial_count() == 0
                    ? ""
                    : ", 00000 to " + to_string(TrialId{view.head->trial_count() - 1})
            )};
    }
    return TrialId{value};
}

}  // namespace muster
