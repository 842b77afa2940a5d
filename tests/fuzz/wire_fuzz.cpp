// SPDX-License-Identifier: Apache-2.0
//
// wire_fuzz - a frame. The first byte says which direction it is of; the frame's stamp, which no
// chance would hit and every new form changes, is put before the rest here. A frame that is taken
// is one that its messages are written as again, but for what has more than one form (a truth).

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "wire/codec.hpp"

namespace muster::fuzz {
namespace {

constexpr std::size_t kStampSize = 4;
constexpr std::size_t kDirections = 5;

std::string frame_of(const std::string& like, std::string_view rest) {
    return like.substr(0, kStampSize).append(rest);
}

template <class Message, class Decode>
void try_frame(std::string_view rest, const Decode& decode) {
    static const std::string like = encode(std::span<const Message>());
    const std::string frame = frame_of(like, rest);
    const Result<std::vector<Message>> messages = decode(frame);
    if (!messages.ok()) {
        check(messages.error().code == ErrorCode::Corrupt, "what is no frame is corrupt");
        return;
    }
    const std::string written = encode(std::span<const Message>(*messages));
    const Result<std::vector<Message>> again = decode(written);
    check(again.ok(), "what was written can be read");
    // By their bytes, since a step that is no number equals nothing.
    check(encode(std::span<const Message>(*again)) == written, "it reads back the same");
}

template <class Word, class Decode>
void try_word(std::string_view rest, const Decode& decode) {
    static const std::string like = encode(Word{});
    const Result<Word> word = decode(frame_of(like, rest));
    if (!word.ok()) {
        check(word.error().code == ErrorCode::Corrupt, "what is no frame is corrupt");
        return;
    }
    const std::string written = encode(*word);
    const Result<Word> again = decode(written);
    check(again.ok() && encode(*again) == written, "it reads back the same");
}

/// One of each kind of message, each of its own.
template <class Message, std::size_t... Index>
void add_each(
    char direction,
    std::vector<std::string>& inputs,
    std::index_sequence<Index...> /**/
) {
    const auto add = [&](const Message& message) {
        inputs.push_back(direction + encode(message).substr(kStampSize));
    };
    (add(Message(std::in_place_index<Index>)), ...);
}

template <class Word>
void add_word(char direction, std::vector<std::string>& inputs) {
    inputs.push_back(direction + encode(Word{}).substr(kStampSize));
}

std::vector<std::string> every_kind() {
    std::vector<std::string> inputs;
    add_each<ToAgent>('\0', inputs, std::make_index_sequence<std::variant_size_v<ToAgent>>());
    add_each<FromAgent>('\1', inputs, std::make_index_sequence<std::variant_size_v<FromAgent>>());
    add_word<Enrol>('\2', inputs);
    add_word<Enlisted>('\3', inputs);
    add_word<AgentReady>('\4', inputs);
    return inputs;
}

void try_one(std::string_view input) {
    if (input.empty()) {
        return;
    }
    const std::string_view rest = input.substr(1);
    switch (static_cast<unsigned char>(input.front()) % kDirections) {
        case 0:
            return try_frame<ToAgent>(rest, decode_to_agent);
        case 1:
            return try_frame<FromAgent>(rest, decode_from_agent);
        case 2:
            return try_word<Enrol>(rest, decode_enrol);
        case 3:
            return try_word<Enlisted>(rest, decode_enlisted);
        default:
            return try_word<AgentReady>(rest, decode_agent_ready);
    }
}

}  // namespace

void try_input(std::string_view input) {
    // Kinds that the corpus does not know yet are tried in any case.
    static bool tried = false;
    if (!std::exchange(tried, true)) {
        for (const std::string& each : every_kind()) {
            try_one(each);
        }
    }
    try_one(input);
}

}  // namespace muster::fuzz

#ifdef MUSTER_FUZZ
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Now and then begins anew from a message of some kind, so that new kinds come up by themselves.
extern "C" std::size_t LLVMFuzzerCustomMutator(  // NOLINT: the name is libFuzzer's
    std::uint8_t* data,
    std::size_t size,
    std::size_t max_size,
    unsigned seed
) {
    static const std::vector<std::string> kKinds = muster::fuzz::every_kind();
    std::minstd_rand random(seed);
    if (random() % 64 == 0) {
        const std::string& kind = kKinds[random() % kKinds.size()];
        size = std::min(kind.size(), max_size);
        std::memcpy(data, kind.data(), size);
    }
    return LLVMFuzzerMutate(data, size, max_size);
}
#endif
