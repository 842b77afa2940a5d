// SPDX-License-Identifier: Apache-2.0
//
// replay - gives a target every file of its corpus, once, in the order of their names:
//
//   NAME_replay DIRECTORY...
//
// A file that ends the process is named before.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz_target.hpp"

namespace {

std::vector<std::string> files_in(const std::string& directory) {
    std::vector<std::string> files;
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(directory, problem)) {
        files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t count = 0;
    for (int index = 1; index < argc; ++index) {
        for (const std::string& path : files_in(argv[index])) {
            std::printf("%s\n", path.c_str());
            // It must be seen if the target aborts.
            std::fflush(stdout);
            muster::fuzz::try_input(content_of(path));
            ++count;
        }
    }
    std::printf("%zu inputs\n", count);
    // A corpus that is not found would be a test of nothing.
    return count > 0 ? 0 : 1;
}
