// SPDX-License-Identifier: Apache-2.0
//
// files - the system calls that put a journal on disk, so that tests can make them fail, hang and
// lose what they took.

#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Thread: called from the writer's own thread, and from JournalWriter::open().
class JournalFiles {
  public:
    virtual ~JournalFiles() = default;

    /// Makes a file (mode 0600) to append to. A descriptor, or an errno below 0; so for all.
    virtual int create(const std::string& path);
    /// Bytes written, at least one.
    virtual long write(int fd, std::string_view bytes);
    /// 0 once what was written is on disk, in a file that still has a name.
    virtual int sync(int fd);
    /// 0 once the names in the directory are on disk.
    virtual int sync_directory(const std::string& path);
    virtual void remove(const std::string& path);
    virtual void close(int fd);
};

}  // namespace muster
