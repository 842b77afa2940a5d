// SPDX-License-Identifier: Apache-2.0
//
// json_reader - reads one line of JSON from another process, piece by piece.
//
// Made for the path of 100,000 reports a second and for hostile input: no tree is built that the
// caller does not want, depth is bounded, nothing throws. Beyond JSON it takes NaN, Infinity and
// -Infinity; the texts "nan", "inf" and "-inf" become the numbers that they stand for.
//
// REQUIRES everywhere: the text is UTF-8 and outlives the reader.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "muster/value.hpp"

namespace muster {

/// Whether two members have the same name.
bool has_twins(const std::vector<ValueMember>& members);

class JsonReader {
  public:
    /// Arrays and objects inside each other.
    static constexpr int kMaxDepth = 32;

    explicit JsonReader(std::string_view text) : text_(text) {}

    /// Each of these reads one thing and is false when it is not there; problem() then says why.
    bool begin_object();
    bool read_text(std::string& out);
    bool read_value(Value& out);
    /// A whole object; names differ from each other.
    bool read_members(std::vector<ValueMember>& out);
    /// Nothing but blanks is left.
    bool end();

    /// The next name inside an object; false at its end and when something is wrong (failed()).
    bool next_name(std::string& out, bool& first);

    bool failed() const { return problem_ != nullptr; }
    /// "expected ':' at byte 17".
    std::string problem() const;

  private:
    bool fail(const char* problem);
    void skip_blanks();
    bool take(char wanted);
    bool take_word(std::string_view word);
    bool read_number(Value& out);
    bool read_list(Value& out);
    bool read_escape(std::string& out);
    bool read_hex(unsigned& code);
    bool begin_nested();

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    const char* problem_ = nullptr;
};

}  // namespace muster
