// SPDX-License-Identifier: Apache-2.0
//
// question - posix_spawn, for its caller may be an MPI process whose memory is dear to copy. The
// child's stderr goes with its stdout: what is wrong is said there.

#include "slurm/question.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

/// More than any answer that is meant.
constexpr std::size_t kMostText = std::size_t{1} << 20U;

Error failed_to(const std::string& what, int code) {
    return {
        code == ENOENT ? ErrorCode::NotFound : ErrorCode::System,
        fmt::format("cannot {}: {}", what, std::generic_category().message(code))};
}

/// Starts `words` with `output` as its stdout and stderr; 0 or an errno.
int start(const std::vector<std::string>& words, int output, pid_t& pid) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const std::string& word : words) {
        argv.push_back(const_cast<char*>(word.c_str()));  // NOLINT: what posix_spawn wants
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    );
    const int failed = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), ::environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    return failed;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

}  // namespace

Result<Question> Question::ask(const std::vector<std::string>& words, Duration until) {
    Question question(words.front(), until);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failed_to("make a pipe", errno);
    }
    question.output_.reset(ends[0]);
    const UniqueFd writing(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (const int failed = start(words, writing.get(), question.pid_); failed != 0) {
        question.pid_ = 0;
        return failed_to("run " + words.front(), failed);
    }
    question.process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, question.pid_, 0)));
    if (!question.process_) {
        return failed_to("watch " + words.front(), errno);
    }
    return question;
}

Question::~Question() {
    end();
}

Question::Question(Question&& other) noexcept
    : name_(std::move(other.name_)),
      until_(other.until_),
      pid_(std::exchange(other.pid_, 0)),
      process_(std::move(other.process_)),
      output_(std::move(other.output_)),
      text_(std::move(other.text_)) {}

Question& Question::operator=(Question&& other) noexcept {
    if (this != &other) {
        end();
        name_ = std::move(other.name_);
        until_ = other.until_;
        pid_ = std::exchange(other.pid_, 0);
        process_ = std::move(other.process_);
        output_ = std::move(other.output_);
        text_ = std::move(other.text_);
    }
    return *this;
}

void Question::end() {
    if (pid_ == 0) {
        return;
    }
    // With whatever it has started; it leads a group of its own.
    ::kill(-pid_, SIGKILL);
    // Not waited for: should it hang in the kernel, its remains go with this process.
    ::waitpid(pid_, nullptr, WNOHANG);
    pid_ = 0;
}

void Question::read() {
    std::array<char, 4096> bytes{};
    while (output_) {
        const ssize_t size = ::read(output_.get(), bytes.data(), bytes.size());
        if (size > 0 && text_.size() < kMostText) {
            text_.append(bytes.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
            output_.reset();
        } else if (size < 0 && errno == EAGAIN) {
            return;
        }
    }
}

std::optional<Result<std::string>> Question::take(Duration now) {
    read();
    int status = 0;
    if (!output_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            return std::move(text_);
        }
        const std::string said = first_line(text_);
        return Error{
            ErrorCode::System,
            fmt::format("{} {}", name_, said.empty() ? "failed" : "says: " + said)};
    }
    if (now < until_) {
        return std::nullopt;
    }
    end();
    return Error{ErrorCode::System, name_ + " does not answer"};
}

}  // namespace muster
