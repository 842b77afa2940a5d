// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text_table.hpp"
#include "head/trial.hpp"

namespace muster {
namespace {

void append_count(std::string& text, std::uint64_t count, std::string_view what) {
    if (count > 0) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    }
}

std::string bar(double share, std::size_t width) {
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
    std::string text;
    for (std::size_t index = 0; index < width; ++index) {
        text += index < filled ? "█" : "░";
    }
    return text;
}

std::string title_line(const HeadSummary& summary, const ProgressOptions& options, TimePoint now) {
    const std::uint64_t done = summary.done();
    std::string line = options.name + "  ";
    if (summary.total) {
        const double share =
            *summary.total == 0
                ? 1.0
                : std::min(1.0, static_cast<double>(done) / static_cast<double>(*summary.total));
        line += fmt::format("{} {}/{}", bar(share, 20), done, *summary.total);
    } else {
        line += fmt::format("{} trials done", done);
    }
    line += "  " + format_duration(now - options.began);
    if (const std::optional<Duration> left = time_left(summary, options, now)) {
        line += ", about " + format_duration(*left) + " left";
    }
    return line;
}

TextTable running_table(const Head& head, std::size_t rows, TimePoint now) {
    TextTable table({"trial", "state", "for", "step", "last result", "config"});
    for (const TrialId id : head.active_trials()) {
        if (rows-- == 0) {
            break;
        }
        const Trial& trial = *head.trial(id);
        const TrialProgress& progress = *trial.progress;
        table.add_row(
            {to_string(id),
             std::string(to_string(trial.state)),
             format_duration(now - progress.running->started),
             progress.last ? fmt::format("{}", progress.last->step) : "",
             progress.last ? fit(format_metrics(*progress.last), 40) : "",
             format_config(trial.config)}
        );
    }
    return table;
}

void append_use(
    std::string& text,
    std::string_view name,
    const std::string& used,
    const std::string& of
) {
    text += fmt::format("{}{} {}/{}", text.empty() ? "" : ", ", name, used, of);
}

std::string format_members(const std::vector<ValueMember>& members) {
    std::string text;
    for (const ValueMember& member : members) {
        text += fmt::format(
            "{}{}={}", text.empty() ? "" : " ", member.key, format_metric(member.value)
        );
    }
    return text;
}

}  // namespace

std::optional<Duration>
time_left(const HeadSummary& summary, const ProgressOptions& options, TimePoint now) {
    const std::uint64_t done = summary.done();
    if (!summary.total || done <= options.done_before || done >= *summary.total) {
        return std::nullopt;
    }
    const double a_trial =
        seconds(now - options.began) / static_cast<double>(done - options.done_before);
    const std::chrono::duration<double> left{a_trial * static_cast<double>(*summary.total - done)};
    // Beyond a few centuries the figure means nothing and would not fit.
    if (!(left < std::chrono::hours{24 * 365 * 200})) {
        return std::nullopt;
    }
    return std::chrono::duration_cast<Duration>(left);
}

std::string format_counts(const HeadSummary& summary) {
    std::string text;
    append_count(text, summary.running, "running");
    append_count(text, summary.stopping, "stopping");
    append_count(text, summary.paused, "paused");
    append_count(text, summary.waiting(), "waiting");
    append_count(text, summary.completed, "completed");
    append_count(text, summary.stopped, "stopped");
    append_count(text, summary.failed, "failed");
    append_count(text, summary.cancelled, "cancelled");
    return text.empty() ? "no trials yet" : text;
}

std::string on_nodes(std::uint32_t nodes, std::uint32_t set_aside) {
    if (nodes < 2 && set_aside == 0) {
        return "";
    }
    const std::string aside = set_aside == 0 ? "" : fmt::format(", {} set aside", set_aside);
    return fmt::format(" on {} nodes{}", nodes, aside);
}

std::string progress_line(const Head& head, const ProgressOptions& options) {
    const HeadSummary summary = head.summary();
    std::string line = fmt::format("{}", summary.done());
    line += summary.total ? fmt::format("/{} done", *summary.total) : " done";
    const std::string counts = format_counts(summary);
    line += "; " + counts;
    const std::string best = best_line(head, options.objective);
    return best.empty() ? line : line + "; " + best;
}

std::vector<std::string>
progress_frame(const Head& head, const ProgressOptions& options, TimePoint now) {
    const HeadSummary summary = head.summary();
    std::vector<std::string> lines{
        title_line(summary, options, now),
        format_counts(summary),
        "in use: " + format_use(summary.in_use, summary.capacity) +
            on_nodes(summary.nodes, summary.nodes_set_aside)};
    const std::string best = best_line(head, options.objective);
    if (!best.empty()) {
        lines.push_back(best);
    }
    const std::size_t active = summary.running + summary.stopping;
    const std::size_t room =
        options.height > lines.size() + 3 ? options.height - lines.size() - 3 : 0;
    if (active > 0 && room > 0) {
        const std::size_t rows = active > room ? room - 1 : active;
        for (std::string& line : running_table(head, rows, now).lines()) {
            lines.push_back(std::move(line));
        }
        if (active > rows) {
            lines.push_back(fmt::format("… and {} more", active - rows));
        }
    }
    for (std::string& line : lines) {
        line = fit(line, options.width);
    }
    return lines;
}

std::string format_metric(const Value& value) {
    if (const double* real = value.as_real()) {
        return fmt::format("{:.6g}", *real);
    }
    return to_argument(value);
}

std::string format_config(const Config& config) {
    return format_members(config.members());
}

std::string format_metrics(const TrialResult& result) {
    return format_members(result.metrics);
}

std::string format_use(const ResourceSet& in_use, const ResourceSet& capacity) {
    std::string text;
    append_use(text, "cpu", to_string(in_use.cpu), to_string(capacity.cpu));
    if (!capacity.gpu.is_zero()) {
        append_use(text, "gpu", to_string(in_use.gpu), to_string(capacity.gpu));
    }
    if (in_use.memory_bytes > 0) {
        append_use(
            text, "memory", format_bytes(in_use.memory_bytes), format_bytes(capacity.memory_bytes)
        );
    }
    for (const NamedAmount& custom : capacity.custom) {
        append_use(
            text,
            custom.name,
            to_string(in_use.custom_amount(custom.name)),
            to_string(custom.amount)
        );
    }
    return text;
}

std::string best_line(const Head& head, const std::optional<ObjectiveSpec>& objective) {
    const std::optional<TrialId> best = head.summary().best;
    if (!best || !objective) {
        return "";
    }
    const Trial& trial = *head.trial(*best);
    const TrialResult& result = *trial.progress->best;
    return fmt::format(
        "best {}: {} {:.6g} at step {} with {}",
        to_string(*best),
        objective->metric,
        result.metric(objective->metric).value_or(0),
        result.step,
        format_config(trial.config)
    );
}

}  // namespace muster
