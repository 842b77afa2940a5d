// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>

#include "slurm/question.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

// The question's clock is whatever the test says.
constexpr Duration kUntil = 100s;

Result<std::string> answer_of(Question& question) {
    while (true) {
        pollfd one{question.fd(), POLLIN, 0};
        if (::poll(&one, 1, 20'000) != 1) {
            return Error{ErrorCode::System, "the test waited in vain"};
        }
        if (std::optional<Result<std::string>> answer = question.take(0s)) {
            return std::move(*answer);
        }
    }
}

Result<std::string> ask(const std::string& script) {
    Result<Question> question = Question::ask({"sh", "-c", script}, kUntil);
    return question ? answer_of(*question) : question.error();
}

TEST(SlurmQuestionTest, TheAnswerIsWhatTheCommandPrinted) {
    const Result<std::string> answer = ask("echo one; echo two");

    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(*answer, "one\ntwo\n");
}

TEST(SlurmQuestionTest, ALongAnswerIsReadWhole) {
    const Result<std::string> answer = ask("seq 30000");

    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->substr(answer->size() - 6), "30000\n");
}

TEST(SlurmQuestionTest, AFailedCommandIsQuoted) {
    const Result<std::string> answer = ask("echo no controller >&2; exit 1");

    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "sh says: no controller");
}

TEST(SlurmQuestionTest, AProgramThatIsNotThereIsNotFound) {
    const Result<Question> question = Question::ask({"muster-no-such-program"}, kUntil);

    ASSERT_FALSE(question);
    EXPECT_EQ(question.error().code, ErrorCode::NotFound);
}

TEST(SlurmQuestionTest, NobodyWaitsForACommandThatDoesNotAnswer) {
    Result<Question> question = Question::ask({"sh", "-c", "sleep 1000 & wait"}, kUntil);
    ASSERT_TRUE(question);

    EXPECT_FALSE(question->take(99s));
    const std::optional<Result<std::string>> answer = question->take(100s);

    ASSERT_TRUE(answer);
    ASSERT_FALSE(*answer);
    EXPECT_EQ(answer->error().message, "sh does not answer");
}

}  // namespace
}  // namespace muster
