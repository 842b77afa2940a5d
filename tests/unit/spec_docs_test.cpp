// SPDX-License-Identifier: Apache-2.0
//
// docs/spec.md says what the loader knows, and nothing else; docs/search-spaces.md has all domains.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/placeholder.hpp"
#include "spec/keys.hpp"
#include "spec/read_domain.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

std::string page(const std::string& name = "spec.md") {
    std::ifstream file(MUSTER_SOURCE_DIR "/docs/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// The text from "## TITLE" to the next heading.
std::string section(const std::string& title) {
    const std::string text = page();
    const std::size_t start = text.find("\n## " + title + "\n");
    EXPECT_NE(start, std::string::npos) << title;
    return text.substr(start, text.find("\n## ", start + 1) - start);
}

/// What stands in backquotes at the start of each row of a section's tables, up to `end`.
std::vector<std::string> first_cells(const std::string& title, const std::string& end) {
    std::istringstream lines(section(title));
    std::vector<std::string> cells;
    for (std::string line; std::getline(lines, line);) {
        if (line.substr(0, 3) == "| `") {
            cells.push_back(line.substr(3, line.find_first_of(end, 3) - 3));
        }
    }
    return cells;
}

TEST(SpecDocsTest, EveryKeyIsListed) {
    std::vector<std::string> now;
    std::vector<std::string> later;
    for (const KnownKey& key : known_keys()) {
        (key.later ? later : now).emplace_back(key.path);
    }

    EXPECT_THAT(first_cells("Keys", "`"), testing::UnorderedElementsAreArray(now));
    EXPECT_THAT(first_cells("Not in this version", "`"), testing::UnorderedElementsAreArray(later));
}

TEST(SpecDocsTest, EveryDomainIsListed) {
    for (const std::string& name : domain_names()) {
        EXPECT_THAT(page("search-spaces.md"), testing::HasSubstr("`{" + name + ": "));
    }
}

TEST(SpecDocsTest, EveryPlaceholderIsListed) {
    for (const std::string& name : muster_placeholders()) {
        EXPECT_THAT(section("Placeholders"), testing::HasSubstr("`{" + name + "}`"));
    }
}

TEST(SpecDocsTest, TheExampleLoads) {
    const std::string text = page();
    const std::string fence = "```yaml\n";
    const std::size_t start = text.find(fence) + fence.size();

    const ExperimentSpec spec = spec_of(text.substr(start, text.find("```\n", start) - start));

    EXPECT_EQ(spec.name, "digits");
    EXPECT_EQ(spec.space.parameters.size(), 6U);
}

}  // namespace
}  // namespace muster
