// SPDX-License-Identifier: Apache-2.0
//
// report_line_fuzz - one line that a trial says, and the words of `muster report`. Numbers and
// texts that were taken are written in JSON that reads back the same.

#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "fuzz_target.hpp"
#include "report/json_reader.hpp"
#include "report/report_client.hpp"
#include "report/report_line.hpp"

namespace muster::fuzz {
namespace {

void check_metrics(const std::vector<ValueMember>& metrics) {
    check(!has_twins(metrics), "each metric has one value");
    const std::string json = to_json(Value(metrics));
    JsonReader reader(json);
    std::vector<ValueMember> again;
    check(reader.read_members(again) && reader.end(), "metrics are written as JSON");
    check(again == metrics, "metrics read back the same");
    const Result<Value> value = value_from_json(json);
    check(value.ok(), "other readers take it, too");
}

void try_line(std::string_view text) {
    const Result<TrialLine> line = read_trial_line(text);
    if (!line.ok()) {
        check(!find_not_utf8(line.error().message), "a message is text");
        check(line.error().message.size() < 4096, "a message can be read");
        const std::string answer = error_line(1, line.error().message, false);
        check(answer.find('\n') == answer.size() - 1, "an answer is one line");
        return;
    }
    if (const auto* report = std::get_if<ReportLine>(&*line)) {
        check(!report->metrics.empty(), "a report has a metric");
        check_metrics(report->metrics);
    }
}

}  // namespace

void try_input(std::string_view input) {
    try_line(input);
    if (!find_not_utf8(input)) {
        const Result<Value> value = value_from_json(input);
        if (value.ok()) {
            const Result<Value> again = value_from_json(to_json(*value));
            check(again.ok() && *again == *value, "JSON reads back the same");
        }
    }
    std::vector<std::string> words;
    for (const std::string_view word : lines_of(input)) {
        words.emplace_back(word);
    }
    (void)parse_metrics(words);
}

}  // namespace muster::fuzz
