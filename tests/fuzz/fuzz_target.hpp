// SPDX-License-Identifier: Apache-2.0
//
// fuzz_target - what the fuzz targets share. A target is one function that takes any bytes, calls
// what is to be tried and check()s what must hold whatever they were. libFuzzer calls it millions
// of times (scripts/fuzz.sh); replay.cpp once for each file of the corpus, as a test of every
// build.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fuzz {

/// What a target is.
void try_input(std::string_view input);

/// The pieces of an input, which lines of "%%" divide, so that a corpus can be read and edited.
inline std::vector<std::string_view> pieces_of(std::string_view input) {
    constexpr std::string_view kDivider = "\n%%\n";
    std::vector<std::string_view> pieces;
    while (true) {
        const std::size_t at = input.find(kDivider);
        pieces.push_back(input.substr(0, at));
        if (at == std::string_view::npos) {
            return pieces;
        }
        input.remove_prefix(at + kDivider.size());
    }
}

/// The lines of a text, without their ends.
inline std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t at = text.find('\n');
        lines.push_back(text.substr(0, at));
        text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    }
    return lines;
}

/// A directory of this process alone, in memory where there is /dev/shm; it goes with the process.
class ScratchDir {
  public:
    ScratchDir() {
        const bool shm = std::filesystem::is_directory("/dev/shm");
        std::string name = shm ? "/dev/shm/muster-fuzz-XXXXXX" : "/tmp/muster-fuzz-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    ~ScratchDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDir(const ScratchDir&) = delete;
    ScratchDir& operator=(const ScratchDir&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace muster::fuzz
