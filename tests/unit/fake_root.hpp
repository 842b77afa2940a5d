// SPDX-License-Identifier: Apache-2.0
//
// fake_root - a directory that stands for another machine's /proc, /sys and /dev.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace muster {

/// Made empty, removed with everything in it at the end.
class FakeRoot {
  public:
    FakeRoot() {
        std::string name = (std::filesystem::temp_directory_path() / "muster-root-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp failed for " + name);
        }
        path_ = name;
    }
    ~FakeRoot() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    FakeRoot(const FakeRoot&) = delete;
    FakeRoot& operator=(const FakeRoot&) = delete;

    /// `path` begins with '/'; directories on the way are made.
    void write(const std::string& path, std::string_view content) const {
        const std::filesystem::path whole = path_ + path;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole, std::ios::binary) << content;
    }

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace muster
