// SPDX-License-Identifier: Apache-2.0

#include "model/placeholder.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/nearest.hpp"

namespace muster {
namespace {

const std::vector<std::string> kKeys{"lr", "hidden", "augment/flip", "learning rate"};

Config config() {
    return Config::from_members(
        {{"lr", 1e-05},
         {"hidden", 64},
         {"augment/flip", true},
         {"learning rate", 0.5},
         {"text", "a b's \"$X\"\n"},
         {"sizes", Value::List{1, 2}}}
    );
}

std::string filled(std::string_view text, Quoting quoting = Quoting::None) {
    const Config values = config();
    const PlaceholderValues known{&values, "00042", "/r/digits/00042", "", "2", "0.5"};
    const Result<std::string> result = expand(text, known, quoting);
    return result.ok() ? *result : "error: " + result.error().message;
}

std::string refused(std::string_view text, Quoting quoting = Quoting::None) {
    const Status status = check_placeholders(text, kKeys, quoting);
    return status.ok() ? "" : status.error().message;
}

TEST(PlaceholderTest, KeysBecomeTheirValues) {
    EXPECT_EQ(filled("--lr={lr}"), "--lr=1e-05");
    EXPECT_EQ(filled("{augment/flip}{hidden}"), "true64");
    EXPECT_EQ(filled("{learning rate}"), "0.5");
    EXPECT_EQ(filled("{sizes}"), "[1, 2]");
    EXPECT_EQ(filled("{text}"), "a b's \"$X\"\n");
}

TEST(PlaceholderTest, MusterHasNamesOfItsOwn) {
    EXPECT_EQ(
        filled("{muster.trial_id} {muster.trial_dir} {muster.cores} {muster.gpus}"),
        "00042 /r/digits/00042 2 0.5"
    );
    EXPECT_EQ(filled("[{muster.checkpoint}]"), "[]");
}

TEST(PlaceholderTest, DoubledBracesAreBraces) {
    EXPECT_EQ(filled("{{\"lr\": {lr}}}"), "{\"lr\": 1e-05}");
    EXPECT_EQ(filled("{{}}"), "{}");
    EXPECT_EQ(filled(""), "");
}

TEST(PlaceholderTest, AKeyWithoutAValueIsEmpty) {
    EXPECT_EQ(filled("--momentum={momentum}"), "--momentum=");
    EXPECT_EQ(filled("--momentum {momentum}", Quoting::Shell), "--momentum ''");
}

TEST(PlaceholderTest, AShellLineGetsEachValueAsOneWord) {
    EXPECT_EQ(filled("echo {text}", Quoting::Shell), "echo 'a b'\\''s \"$X\"\n'");
    EXPECT_EQ(filled("echo {lr} {sizes}", Quoting::Shell), "echo 1e-05 '[1, 2]'");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("~/a"), "'~/a'");
}

TEST(PlaceholderTest, AShellLineMustNotQuoteAPlaceholder) {
    EXPECT_EQ(
        refused("echo \"{lr}\"", Quoting::Shell),
        "{lr} at character 7 is inside double quotes; its value brings its own quotes, so end them "
        "before it"
    );
    EXPECT_NE(
        refused("echo 'a {lr}'", Quoting::Shell).find("inside single quotes"), std::string::npos
    );
    EXPECT_EQ(refused("echo 'a' {lr} \"b\\\"\" {lr} \\\" {lr}", Quoting::Shell), "");
    EXPECT_EQ(refused("true # don't\necho {lr}", Quoting::Shell), "");
    EXPECT_EQ(refused("echo \"{lr}\"", Quoting::None), "");
    EXPECT_EQ(filled("echo \"{lr}\"", Quoting::Shell).substr(0, 6), "error:");
}

TEST(PlaceholderTest, AnUnknownNameIsToldWithTheNearest) {
    EXPECT_EQ(
        refused("--x {hiden}"),
        "{hiden} at character 5 names no key of the space (did you mean {hidden}?); write "
        "{{hiden}} "
        "for the text itself"
    );
    EXPECT_EQ(
        refused("${HOME}"),
        "{HOME} at character 2 names no key of the space; write {{HOME}} for the text itself"
    );
    EXPECT_NE(refused("{muster.trial}").find("muster.trial_id"), std::string::npos);
}

TEST(PlaceholderTest, ABraceOfNoPlaceholderIsRefused) {
    const std::string open =
        "'{' at character 1 belongs to no placeholder; write {{ for the brace itself";
    EXPECT_EQ(refused("{\"a\": 1}"), open);
    EXPECT_EQ(refused("{}"), open);
    EXPECT_EQ(refused("{"), open);
    EXPECT_EQ(refused("{lr"), open);
    EXPECT_EQ(refused("{a\n}"), open);
    EXPECT_EQ(
        refused("a } b"),
        "'}' at character 3 belongs to no placeholder; write }} for the brace itself"
    );
    EXPECT_EQ(filled("{\"a\": 1}"), "error: " + open);
}

TEST(PlaceholderTest, MentionsFindsWholeNames) {
    EXPECT_TRUE(mentions("x{muster.trial_dir}/y", "muster.trial_dir"));
    EXPECT_FALSE(mentions("{{muster.trial_dir}}", "muster.trial_dir"));
    EXPECT_FALSE(mentions("{lr", "lr"));
}

TEST(NearestTest, TheNameWithFewestEditsIsSaid) {
    const std::vector<std::string> known{"uniform", "loguniform", "choice", "num_samples"};

    EXPECT_EQ(nearest("unifrom", known), "uniform");
    EXPECT_EQ(nearest("Choice", known), "choice");
    EXPECT_EQ(nearest("num-samples", known), "num_samples");
    EXPECT_EQ(nearest("xyz", known), "");
    EXPECT_EQ(nearest("", known), "");
    EXPECT_EQ(nearest("a", {"b"}), "");
    EXPECT_EQ(nearest(std::string(100'000, 'a'), known), "");
    EXPECT_EQ(did_you_mean("choise", known), "; did you mean 'choice'?");
}

}  // namespace
}  // namespace muster
