// SPDX-License-Identifier: Apache-2.0

#include "slurm/requeue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <poll.h>

#include "slurm/question.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// Between two tries.
constexpr Duration kRetryInterval = 2s;
/// So many that are not answered make up the whole patience.
constexpr int kTries = 6;

Duration now() {
    return std::chrono::steady_clock::now().time_since_epoch();
}

Result<std::string> answer_to(const std::vector<std::string>& words, Duration until) {
    Result<Question> question = Question::ask(words, until);
    if (!question.ok()) {
        return question.error();
    }
    while (true) {
        if (std::optional<Result<std::string>> answer = question->take(now())) {
            return std::move(*answer);
        }
        pollfd one{question->fd(), POLLIN, 0};
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now());
        ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(wait.count(), 0)));
    }
}

Result<JobRecord> ask_for_job(const SlurmJob& job, Duration until) {
    const Result<std::string> text = answer_to(show_job_command(job), until);
    return text.ok() ? parse_job_record(*text) : text.error();
}

/// Nothing: to be tried again.
std::optional<RequeueEnd> try_once(const SlurmJob& job, Duration patience, std::string& problem) {
    const Result<JobRecord> record = ask_for_job(job, now() + patience);
    if (record.ok() && !is_this_incarnation(*record, job)) {
        return RequeueEnd{record->restarts > job.restarts || record->state == "PENDING", ""};
    }
    if (record.ok()) {
        const Result<std::string> done = answer_to(requeue_command(job), now() + patience);
        if (done.ok()) {
            return RequeueEnd{true, ""};
        }
        problem = done.error().message;
        // Slurm has heard it, and refuses.
        return record->may_requeue ? std::nullopt
                                   : std::optional(RequeueEnd{
                                         false,
                                         fmt::format(
                                             "Slurm does not put job {} back into its queue ({}): "
                                             "`#SBATCH --requeue` allows it",
                                             job.id,
                                             problem
                                         )});
    }
    problem = record.error().message;
    return std::nullopt;
}

}  // namespace

bool is_this_incarnation(const JobRecord& record, const SlurmJob& job) {
    return record.state == "RUNNING" && record.restarts == job.restarts;
}

bool is_over(const JobRecord& record, const SlurmJob& job) {
    constexpr std::array<std::string_view, 4> kAlive{
        "RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING"};
    const bool is_alive = std::find(kAlive.begin(), kAlive.end(), record.state) != kAlive.end();
    return record.restarts > job.restarts || !is_alive;
}

std::vector<std::string> show_job_command(const SlurmJob& job) {
    return {"scontrol", "--oneliner", "show", "job", job.id};
}

std::vector<std::string> requeue_command(const SlurmJob& job) {
    return {"scontrol", "requeue", job.id};
}

RequeueEnd requeue(const SlurmJob& job, std::uint32_t most, Duration patience) {
    if (job.restarts >= most) {
        return {
            false,
            fmt::format(
                "Slurm job {} was put back into the queue {} times already, as often as "
                "--max-requeues allows; submit it again to go on",
                job.id,
                job.restarts
            )};
    }
    const Duration until = now() + patience;
    std::string problem;
    std::optional<RequeueEnd> end;
    while (true) {
        // What was asked of a controller that was away may never be answered, though it is back.
        end = try_once(job, patience / kTries, problem);
        if (end || now() + kRetryInterval >= until) {
            break;
        }
        ::poll(nullptr, 0, static_cast<int>(kRetryInterval / 1ms));
    }
    if (!end) {
        return {
            false,
            fmt::format(
                "Slurm job {} could not be put back into the queue: {}; submit it again to go on",
                job.id,
                problem
            )};
    }
    if (end->is_queued) {
        end->text = fmt::format(
            "Slurm job {} is back in the queue and goes on from there ({} of at most {} times)",
            job.id,
            job.restarts + 1,
            most
        );
    }
    return *end;
}

}  // namespace muster
