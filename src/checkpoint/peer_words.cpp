// SPDX-License-Identifier: Apache-2.0

#include "checkpoint/peer_words.hpp"

#include <cstring>
#include <type_traits>
#include <utility>

namespace muster {
namespace {

/// Numbers in the machine's own order: both ends are one build.
struct Writer {
    std::string out;

    template <class T>
    void field(const T& value) {
        if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
            char bytes[sizeof value];
            std::memcpy(bytes, &value, sizeof value);
            out.append(bytes, sizeof bytes);
        } else {
            visit_fields(*this, value);
        }
    }
    void field(const std::string& text) {
        field(std::uint64_t{text.size()});
        out += text;
    }
    template <class T>
    void field(const std::vector<T>& list) {
        field(std::uint64_t{list.size()});
        for (const T& item : list) {
            field(item);
        }
    }
};

struct Reader {
    std::string_view in;
    bool good = true;

    template <class T>
    void field(T& value) {
        if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
            good = good && in.size() >= sizeof value;
            if (good) {
                std::memcpy(&value, in.data(), sizeof value);
                in.remove_prefix(sizeof value);
            }
        } else {
            visit_fields(*this, value);
        }
    }
    void field(std::string& text) {
        const std::size_t size = read_size();
        text.assign(in.substr(0, size));
        in.remove_prefix(size);
    }
    template <class T>
    void field(std::vector<T>& list) {
        const std::size_t size = read_size();
        for (std::size_t index = 0; index < size && good; ++index) {
            field(list.emplace_back());
        }
    }

    /// Each element takes at least a byte, so no size makes us allocate more than there is.
    std::size_t read_size() {
        std::uint64_t size = 0;
        field(size);
        good = good && size <= in.size();
        return good ? static_cast<std::size_t>(size) : 0;
    }
};

template <class Coder, class T>
void visit_fields(Coder& coder, T& value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, FetchKey>) {
        coder.field(value.fetch);
        coder.field(value.trial.value);
        coder.field(value.number);
    } else if constexpr (std::is_same_v<Plain, CheckpointEntry>) {
        coder.field(value.kind);
        coder.field(value.path);
        coder.field(value.target);
        coder.field(value.mode);
        coder.field(value.bytes);
    } else if constexpr (std::is_same_v<Plain, FilePiece>) {
        coder.field(value.path);
        coder.field(value.offset);
        coder.field(value.bytes);
    } else {
        coder.field(value.key);
        if constexpr (std::is_same_v<Plain, AskEntries>) {
            coder.field(value.skip);
        } else if constexpr (std::is_same_v<Plain, AskPieces>) {
            coder.field(value.pieces);
        } else if constexpr (std::is_same_v<Plain, Entries>) {
            coder.field(value.entries);
            coder.field(value.last);
        } else if constexpr (std::is_same_v<Plain, Pieces>) {
            coder.field(value.bytes);
        } else {
            coder.field(value.why);
        }
    }
}

/// Whether a path stays within the checkpoint.
bool is_inside(const std::string& path) {
    std::string_view rest = path;
    if (rest.empty() || rest.find('\0') != std::string_view::npos) {
        return false;
    }
    while (true) {
        const std::string_view part = rest.substr(0, rest.find('/'));
        if (part.empty() || part == "." || part == "..") {
            return false;
        }
        if (part.size() == rest.size()) {
            return true;
        }
        rest.remove_prefix(part.size() + 1);
    }
}

bool makes_sense(const PeerMessage& message) {
    if (const auto* ask = std::get_if<AskPieces>(&message)) {
        std::int64_t left = kFetchBytes;
        for (const FilePiece& piece : ask->pieces) {
            if (!is_inside(piece.path) || piece.offset < 0 || piece.bytes < 0 ||
                piece.bytes > left) {
                return false;
            }
            left -= piece.bytes;
        }
    }
    if (const auto* entries = std::get_if<Entries>(&message)) {
        for (const CheckpointEntry& entry : entries->entries) {
            if (!is_inside(entry.path) || entry.kind > CheckpointEntry::Kind::Link ||
                entry.bytes < 0) {
                return false;
            }
        }
    }
    return true;
}

template <std::size_t Index = 0>
std::optional<PeerMessage> read_kind(std::size_t kind, Reader& reader) {
    if constexpr (Index < std::variant_size_v<PeerMessage>) {
        if (kind != Index) {
            return read_kind<Index + 1>(kind, reader);
        }
        std::variant_alternative_t<Index, PeerMessage> value;
        reader.field(value);
        if (reader.good && reader.in.empty()) {
            return value;
        }
    }
    return std::nullopt;
}

}  // namespace

std::string encode_peer_message(const PeerMessage& message) {
    Writer writer;
    writer.field(static_cast<std::uint8_t>(message.index()));
    std::visit([&](const auto& value) { writer.field(value); }, message);
    return std::move(writer.out);
}

std::optional<PeerMessage> decode_peer_message(std::string_view bytes) {
    Reader reader{bytes};
    std::uint8_t kind = 0;
    reader.field(kind);
    std::optional<PeerMessage> message = reader.good ? read_kind(kind, reader) : std::nullopt;
    return message && makes_sense(*message) ? std::move(message) : std::nullopt;
}

}  // namespace muster
