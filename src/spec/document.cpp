// SPDX-License-Identifier: Apache-2.0

#include "spec/document.hpp"

#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <streambuf>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/utf8.hpp"
#include "spec/source_text.hpp"

namespace muster {
namespace {

constexpr std::size_t kDeepest = 100;
constexpr std::size_t kMostValues = 200'000;
constexpr std::size_t kMostAliasedBytes = std::size_t{64} << 20U;

/// Ends the reading of a document from within a callback; never leaves this file.
struct Refused {
    Place place;
    std::string message;
};

struct Size {
    std::size_t values = 0;
    std::size_t bytes = 0;
};

Size size_of(const YamlNode& node) {
    Size size{1, node.text.size()};
    const auto add = [&size](const YamlNode& inner) {
        const Size more = size_of(inner);
        size.values += more.values;
        size.bytes += more.bytes;
    };
    for (const YamlNode& item : node.items) {
        add(item);
    }
    for (const Entry& entry : node.entries) {
        add(entry.value);
        size.bytes += entry.key.size();
    }
    return size;
}

std::size_t depth_of(const YamlNode& node) {
    std::size_t depth = 0;
    for (const YamlNode& item : node.items) {
        depth = std::max(depth, depth_of(item));
    }
    for (const Entry& entry : node.entries) {
        depth = std::max(depth, depth_of(entry.value));
    }
    return depth + 1;
}

/// Builds the tree from yaml-cpp's events.
class Builder final : public YAML::EventHandler {
  public:
    Builder(Problems& problems, std::uint32_t set) : problems_(problems), set_(set) {}

    YamlNode take() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) {
            throw Refused{place(mark), "a second document begins; a file holds one"};
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        finish({.place = place(mark)}, anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) {
            throw Refused{place(mark), "an alias stands inside the value that it names"};
        }
        const Size size = size_of(found->second);
        count(place(mark), size.values, size.bytes);
        if (open_.size() + depth_of(found->second) > kDeepest) {
            throw too_deep(place(mark));
        }
        finish(found->second, 0);
    }
    void OnScalar(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        const std::string& text
    ) override {
        const bool text_tag = tag == "!" || tag == "tag:yaml.org,2002:str";
        check_tag(mark, tag);
        finish(
            {.kind = YamlNode::Kind::Scalar,
             .place = place(mark),
             .text = text,
             .quoted = text_tag},
            anchor
        );
    }
    void OnSequenceStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value /*style*/
    ) override {
        check_tag(mark, tag);
        begin({.kind = YamlNode::Kind::List, .place = place(mark)}, anchor);
    }
    void OnSequenceEnd() override { end(); }
    void OnMapStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value /*style*/
    ) override {
        check_tag(mark, tag);
        begin({.kind = YamlNode::Kind::Map, .place = place(mark)}, anchor);
    }
    void OnMapEnd() override { end(); }

  private:
    /// A list or map that is being read.
    struct Open {
        YamlNode node;
        YAML::anchor_t anchor = 0;
        bool has_key = false;
        std::string key;
        Place key_place;
        std::set<std::string> keys;
    };

    Place place(const YAML::Mark& mark) const {
        return {
            static_cast<std::uint32_t>(std::max(mark.line, 0) + 1),
            static_cast<std::uint32_t>(std::max(mark.column, 0) + 1),
            set_};
    }

    static Refused too_deep(Place at) {
        return {at, fmt::format("values are nested more than {} deep", kDeepest)};
    }

    void check_tag(const YAML::Mark& mark, const std::string& tag) {
        static const std::set<std::string> meaningful{
            "",
            "?",
            "!",
            "tag:yaml.org,2002:str",
            "tag:yaml.org,2002:int",
            "tag:yaml.org,2002:float",
            "tag:yaml.org,2002:bool",
            "tag:yaml.org,2002:null",
            "tag:yaml.org,2002:seq",
            "tag:yaml.org,2002:map"};
        if (meaningful.count(tag) == 0) {
            problems_.add(place(mark), "", fmt::format("the tag {} means nothing here", tag));
        }
    }

    void count(Place at, std::size_t values, std::size_t aliased_bytes) {
        values_ += values;
        bytes_ += aliased_bytes;
        if (values_ > kMostValues || bytes_ > kMostAliasedBytes) {
            throw Refused{
                at, fmt::format("more than {} values, each use of an alias counted", kMostValues)};
        }
    }

    void begin(YamlNode node, YAML::anchor_t anchor) {
        if (open_.size() >= kDeepest) {
            throw too_deep(node.place);
        }
        Open open;
        open.node = std::move(node);
        open.anchor = anchor;
        open_.push_back(std::move(open));
    }

    void end() {
        Open open = std::move(open_.back());
        open_.pop_back();
        finish(std::move(open.node), open.anchor);
    }

    /// A value is complete: it is the root, an item, a key or the value of a key.
    void finish(YamlNode node, YAML::anchor_t anchor) {
        count(node.place, 1, 0);
        if (anchor != 0) {
            // Kept beside the tree: anchors around anchors would else cost without bound.
            const Size size = size_of(node);
            count(node.place, size.values, size.bytes);
            anchors_[anchor] = node;
        }
        if (open_.empty()) {
            root_ = std::move(node);
            return;
        }
        Open& parent = open_.back();
        if (parent.node.is_list()) {
            parent.node.items.push_back(std::move(node));
        } else if (!parent.has_key) {
            take_key(parent, node);
        } else {
            take_member(parent, std::move(node));
        }
    }

    void take_key(Open& parent, const YamlNode& node) {
        if (!node.is_scalar()) {
            throw Refused{
                node.place, "a key must be text, not " + describe(node) + "; is it in quotes?"};
        }
        parent.has_key = true;
        parent.key = node.text;
        parent.key_place = node.place;
    }

    void take_member(Open& parent, YamlNode node) {
        parent.has_key = false;
        // yaml-cpp puts an absent value where the next token is.
        if (node.is_null()) {
            node.place = parent.key_place;
        }
        if (!parent.keys.insert(parent.key).second) {
            problems_.add(parent.key_place, parent.key, "the key is written twice; keep one");
            return;
        }
        parent.node.entries.push_back({parent.key, parent.key_place, std::move(node)});
    }

    Problems& problems_;
    std::uint32_t set_;
    std::uint32_t documents_ = 0;
    std::size_t values_ = 0;
    std::size_t bytes_ = 0;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, YamlNode> anchors_;
    YamlNode root_;
};

/// A stream over text without a copy.
class TextBuffer final : public std::streambuf {
  public:
    explicit TextBuffer(std::string& text) {
        setg(text.data(), text.data(), text.data() + text.size());
    }
};

void parse(std::string& source, Builder& builder) {
    TextBuffer buffer(source);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
}

/// yaml-cpp takes a quote that is not closed for closed when a newline ends the text. An end of the
/// document stands in no quotes, so there it says so.
void check_quotes(std::string& source) {
    if (source.find_first_of("\"'") == std::string::npos || source.back() != '\n') {
        return;
    }
    source += "...\n";
    Problems told_already("", {});
    Builder ignored(told_already, 0);
    parse(source, ignored);
}

/// What a person can do about yaml-cpp's messages that say little.
std::string hint_for(const std::string& message) {
    if (message.find("illegal tab") != std::string::npos) {
        return "; indent with blanks";
    }
    if (message.find("illegal document indicator") != std::string::npos) {
        return "; a quote before it is not closed";
    }
    if (message.find("bad file") != std::string::npos) {
        return fmt::format("; are values nested more than {} deep?", kDeepest);
    }
    if (message.find("illegal map value") == 0) {
        return "; text that holds ': ' needs quotes";
    }
    const std::string quotes = "quotes round text with any of {}[],:#";
    if (message.find("end of sequence flow") == 0) {
        return "; is a ] missing, or " + quotes + "?";
    }
    if (message.find("end of map flow") == 0) {
        return "; is a } missing, or " + quotes + "?";
    }
    if (message.find("end of ") == 0) {
        return "; is the line not indented as those beside it, or missing " + quotes + "?";
    }
    return message.find("unknown token") == 0 ? "; is it missing " + quotes + "?" : "";
}

/// The first line, up to `last`, that a tab indents: YAML forbids it, and yaml-cpp gives it other
/// names.
std::optional<std::uint32_t> line_with_tab(std::string_view text, std::uint32_t last) {
    std::uint32_t line = 1;
    for (std::size_t at = 0; at < text.size() && line <= last; ++line) {
        const std::size_t first = text.find_first_not_of(' ', at);
        if (first != std::string_view::npos && text[first] == '\t') {
            return line;
        }
        const std::size_t end = text.find('\n', at);
        at = end == std::string_view::npos ? text.size() : end + 1;
    }
    return std::nullopt;
}

/// What yaml-cpp threw, with the place and what to do about it.
void add_syntax_problem(
    const YAML::Exception& problem,
    std::string_view source,
    Problems& problems,
    std::uint32_t set
) {
    Place place{
        static_cast<std::uint32_t>(std::max(problem.mark.line, 0) + 1),
        static_cast<std::uint32_t>(std::max(problem.mark.column, 0) + 1),
        set};
    std::string message = problem.msg + hint_for(problem.msg);
    const std::optional<std::uint32_t> tab = line_with_tab(source, place.line);
    if (tab && problem.msg.find("illegal tab") == std::string::npos) {
        place = {*tab, 1, set};
        message = "a tab indents this line; indent with blanks";
    }
    problems.add(place, "", "not YAML: " + message);
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.key == key;
    });
    return found == entries.end() ? nullptr : &found->value;
}

YamlNode* YamlNode::find(std::string_view key) {
    return const_cast<YamlNode*>(std::as_const(*this).find(key));
}

bool read_document(std::string_view text, YamlNode& root, Problems& problems, std::uint32_t set) {
    Result<std::string> source = prepare_source(text, problems, set);
    if (!source) {
        return false;
    }
    try {
        Builder builder(problems, set);
        parse(*source, builder);
        check_quotes(*source);
        root = builder.take();
        root.place.set = set;
        return true;
    } catch (const Refused& refused) {
        problems.add(refused.place, "", refused.message);
    } catch (const YAML::Exception& problem) {
        add_syntax_problem(problem, *source, problems, set);
    } catch (const std::exception& problem) {
        problems.add({1, 1, set}, "", fmt::format("not YAML: {}", problem.what()));
    }
    return false;
}

}  // namespace muster
