// SPDX-License-Identifier: Apache-2.0

#include "runtime/build_id.hpp"

#include <cstddef>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

namespace muster {
namespace {

/// The notes of a program are aligned to four bytes.
std::size_t padded(std::size_t size) {
    return (size + 3) & ~std::size_t{3};
}

/// The build id among the notes in `bytes`, in hexadecimal; empty when it is not there.
std::string build_id_among(std::string_view bytes) {
    while (bytes.size() >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note{};
        std::memcpy(&note, bytes.data(), sizeof note);
        const std::size_t name_end = sizeof note + padded(note.n_namesz);
        const std::size_t end = name_end + padded(note.n_descsz);
        if (end > bytes.size()) {
            break;
        }
        const std::string_view name = bytes.substr(sizeof note, note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
            std::string text;
            for (const char byte : bytes.substr(name_end, note.n_descsz)) {
                text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
            }
            return text;
        }
        bytes.remove_prefix(end);
    }
    return "";
}

/// The first object is the program itself.
int look_at_program(dl_phdr_info* object, std::size_t /*size*/, void* found) {
    for (int index = 0; index < object->dlpi_phnum; ++index) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[index];
        if (segment.p_type != PT_NOTE) {
            continue;
        }
        const ElfW(Addr) address = object->dlpi_addr + segment.p_vaddr;
        const char* begin = reinterpret_cast<const char*>(address);  // NOLINT
        const std::string id = build_id_among({begin, segment.p_memsz});
        if (!id.empty()) {
            *static_cast<std::string*>(found) = id;
        }
    }
    return 1;
}

}  // namespace

std::string build_id() {
    std::string id;
    ::dl_iterate_phdr(look_at_program, &id);
    const std::string version = MUSTER_VERSION;
    return id.empty() ? version : fmt::format("{} ({})", version, id.substr(0, 16));
}

}  // namespace muster
