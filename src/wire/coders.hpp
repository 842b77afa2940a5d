// SPDX-License-Identifier: Apache-2.0
//
// coders - Saver and Loader: how the codec meets Boost.Serialization. Only numbers and raw bytes
// pass through the archive; what they mean is in codec.cpp. Included there alone.
//
// Boost's own strings and vectors would allocate whatever count the bytes name, and its bool
// aborts on any byte but 0 and 1: here every count is held against the bytes that are left.

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>

#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>

namespace muster::wire {

inline constexpr unsigned kArchiveFlags = unsigned{boost::archive::no_header} |
                                          unsigned{boost::archive::no_codecvt} |
                                          unsigned{boost::archive::no_tracking};

/// Thrown by Loader, caught in codec.cpp.
class CorruptFrame : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Appends whatever is written to a string.
class StringSink : public std::streambuf {
  public:
    explicit StringSink(std::string& out) : out_(out) {}

  protected:
    std::streamsize xsputn(const char* data, std::streamsize size) override {
        out_.append(data, static_cast<std::size_t>(size));
        return size;
    }
    int_type overflow(int_type byte) override {
        out_ += traits_type::to_char_type(byte);
        return byte;
    }

  private:
    std::string& out_;
};

/// Reads from bytes that it does not own.
class BytesSource : public std::streambuf {
  public:
    explicit BytesSource(std::string_view bytes) {
        // The get area is never written to; streambuf just has no const form of it.
        char* begin = const_cast<char*>(bytes.data());  // NOLINT
        setg(begin, begin, begin + bytes.size());
    }
    std::size_t left() const { return static_cast<std::size_t>(egptr() - gptr()); }
};

class Saver {
  public:
    static constexpr bool kLoads = false;

    explicit Saver(std::string& out) : sink_(out), archive_(sink_, kArchiveFlags) {}

    template <class Number>
    void number(Number value) {
        archive_ << value;
    }
    std::size_t count(std::size_t size) {
        number(std::uint64_t{size});
        return size;
    }
    void text(std::string& text) {
        count(text.size());
        archive_.save_binary(text.data(), text.size());
    }

  private:
    StringSink sink_;
    boost::archive::binary_oarchive archive_;
};

class Loader {
  public:
    static constexpr bool kLoads = true;

    explicit Loader(std::string_view bytes) : source_(bytes), archive_(source_, kArchiveFlags) {}

    template <class Number>
    void number(Number& value) {
        archive_ >> value;
    }
    /// A count of things that take at least a byte each.
    std::size_t count(std::size_t /*unused*/) {
        std::uint64_t size = 0;
        archive_ >> size;
        if (size > source_.left()) {
            throw CorruptFrame("a count is larger than what is left of the frame");
        }
        return static_cast<std::size_t>(size);
    }
    void text(std::string& text) {
        text.resize(count(0));
        archive_.load_binary(text.data(), text.size());
    }
    std::size_t left() const { return source_.left(); }

    /// Lists and maps nest; hostile bytes must not exhaust the stack.
    void enter() {
        if (++depth_ > kMaxDepth) {
            throw CorruptFrame("values nest too deeply");
        }
    }
    void leave() { --depth_; }

  private:
    static constexpr int kMaxDepth = 1000;

    BytesSource source_;
    boost::archive::binary_iarchive archive_;
    int depth_ = 0;
};

}  // namespace muster::wire
