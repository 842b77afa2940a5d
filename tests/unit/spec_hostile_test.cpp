// SPDX-License-Identifier: Apache-2.0
//
// Input that nobody writes by accident: it is refused or read, and never crashes, hangs or throws.

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "spec/cluster_file.hpp"
#include "spec/load_spec.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t count = 0; count < times; ++count) {
        all += text;
    }
    return all;
}

TEST(SpecHostileTest, DeepNestingIsRefused) {
    EXPECT_THAT(refused("a: " + repeated("[", 200'000)), HasSubstr("nested more than 100 deep"));
    EXPECT_THAT(
        refused(repeated("{a: ", 101) + repeated("}", 101)), HasSubstr("nested more than 100 deep")
    );
    EXPECT_THAT(refused(repeated("- ", 100'000)), HasSubstr("nested more than 100 deep"));
    EXPECT_THAT(refused(repeated("? ", 100'000)), HasSubstr("sweep.yaml:1:"));
    EXPECT_THAT(
        refused(repeated("[", 90) + repeated("]", 90)), HasSubstr("expected a map, found a list")
    );
}

TEST(SpecHostileTest, AliasesCannotGrowWithoutBound) {
    std::string bomb = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int level = 1; level < 20; ++level) {
        const std::string before = std::to_string(level - 1);
        bomb += fmt::format(
            "b{0}: &a{0} [{1}*a{2}]\n", level, repeated("*a" + before + ", ", 9), before
        );
    }
    EXPECT_THAT(refused(bomb), HasSubstr("more than 200000 values, each use of an alias counted"));
    EXPECT_THAT(
        refused("a: &x [1, *x]\n"), HasSubstr("an alias stands inside the value that it names")
    );
    EXPECT_THAT(refused("a: *nobody\n"), HasSubstr("not YAML"));
    EXPECT_THAT(
        refused("a: &x " + std::string(1'000'000, 'x') + "\nb: [" + repeated("*x, ", 1000) + "]\n"),
        HasSubstr("each use of an alias counted")
    );
    EXPECT_EQ(spec_of("trial: {command: [&c run, *c]}").trial.command[1], "run");
}

TEST(SpecHostileTest, AnchorsAroundAnchorsAreCounted) {
    std::string text;
    for (int level = 0; level < 90; ++level) {
        text += "&a" + std::to_string(level) + " [";
    }
    text += repeated("x, ", 10'000) + repeated("]", 90);
    EXPECT_THAT(refused("a: " + text), HasSubstr("more than 200000 values"));
}

TEST(SpecHostileTest, HugeInputIsRefused) {
    EXPECT_THAT(refused(std::string((std::size_t{8} << 20U) + 1, 'x')), HasSubstr("at most 8 MiB"));
    EXPECT_THAT(
        refused("a: [" + repeated("x, ", 250'000) + "]"), HasSubstr("more than 200000 values")
    );
    const std::string message = refused("trial: {command: " + std::string(1'000'000, 'x') + "}");
    EXPECT_LT(message.size(), 1000U);
    EXPECT_LT(refused(std::string(100'000, 'k') + "\n").size(), 1000U);
}

TEST(SpecHostileTest, ManyKeysAndConditionsEnd) {
    std::string text = kRuns + "space:\n";
    for (int index = 0; index < 15'000; ++index) {
        text += "  k" + std::to_string(index) + ": {choice: [1, 2], when: {k0: 1}}\n";
    }
    EXPECT_THAT(refused(text), HasSubstr("more than 2000 keys"));
}

TEST(SpecHostileTest, BytesThatAreNoTextAreToldWithTheirPlace) {
    EXPECT_EQ(
        refused("name: a\nmode: \xFF\n"),
        "sweep.yaml:2:7: the byte 0xff is not UTF-8; save the file as UTF-8"
    );
    EXPECT_EQ(
        refused(std::string("a: \xC3\xA9\x00", 6)),
        "sweep.yaml:1:5: the control character 0x00 is not text; in double quotes \\x00 means it"
    );
    EXPECT_THAT(
        refused("\xFF\xFE"
                "a"),
        HasSubstr("not UTF-8")
    );
    EXPECT_THAT(refused("a: \x04\n"), HasSubstr("the control character 0x04"));
    EXPECT_THAT(
        refused("a: 1\n\tb: 2\n"),
        HasSubstr(
            "sweep.yaml:2:1: not YAML: illegal tab when looking for indentation; indent with blanks"
        )
    );
}

TEST(SpecHostileTest, YamlThatMeansNothingHereIsRefused) {
    EXPECT_THAT(
        refused("a: 1\n---\nb: 2\n"), HasSubstr("a second document begins; a file holds one")
    );
    EXPECT_THAT(refused("? [a]\n: 1\n"), HasSubstr("a key must be text, not a list"));
    EXPECT_THAT(refused("~: 1\n"), HasSubstr("a key must be text, not null"));
    EXPECT_THAT(
        refused(kRuns + "name: !!binary aGVsbG8=\n"),
        HasSubstr("sweep.yaml:2:7: the tag tag:yaml.org,2002:binary means nothing here")
    );
    EXPECT_THAT(refused("a: [1\n"), HasSubstr("is a ] missing, or quotes"));
    EXPECT_THAT(refused("a: b: 1\n"), HasSubstr("text that holds ': ' needs quotes"));
    EXPECT_THAT(
        refused("trial:\n\tcommand: [a]\n"),
        HasSubstr("sweep.yaml:2:1: not YAML: a tab indents this line; indent with blanks")
    );
    EXPECT_THAT(
        refused("name: \"x\nseed: 1\n"),
        HasSubstr("not YAML: illegal document indicator in scalar; a quote before it is not closed")
    );
    EXPECT_THAT(refused("a: 'x"), HasSubstr("illegal EOF in scalar"));
    EXPECT_THAT(refused("\"\\ud83d\": 1\n"), HasSubstr("not YAML"));
    EXPECT_THAT(refused("%YAML 9.9\n---\na: 1\n"), HasSubstr("sweep.yaml:"));
}

TEST(SpecHostileTest, BrokenSpecsNeverDoHarm) {
    const std::string good = R"(name: digits
metric: accuracy
trial:
  command: [python3, train.py, --lr, "{lr}", --out, "{muster.trial_dir}/model"]
  metrics: {from: stdout, pattern: 'epoch (?P<step>\d+) acc=(?P<accuracy>\S+)'}
space: {lr: {loguniform: [1.0e-4, 1.0e-1]}, m: {uniform: [0, 0.9], when: {o: &a [s, 1]}}, o: *a}
resources: [{when: {o: s}, cpu: 1, memory: 2GiB}, {gpu: 0.5}]
search: {points: [{lr: 0.01}]}
stop: {accuracy: 0.99, val_loss: "<= 0.05"}
)";
    const std::string alphabet = "{}[]:,-&*!|>'\"%@`#?~\n \t\\0aZ.\xC3\xFF";
    RandomStream random(7);
    for (int round = 0; round < 1000; ++round) {
        std::string broken = good;
        for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
            const std::size_t at = random.below(broken.size());
            const char letter = alphabet[random.below(alphabet.size())];
            switch (random.below(3)) {
                case 0:
                    broken[at] = letter;
                    break;
                case 1:
                    broken.insert(at, 1, letter);
                    break;
                default:
                    broken.erase(at, 1 + random.below(20));
            }
        }
        const Result<ExperimentSpec> spec = parsed(broken);
        EXPECT_TRUE(spec.ok() || !spec.error().message.empty());
        EXPECT_FALSE(parse_cluster(broken, "c.yaml").ok());
    }
}

}  // namespace
}  // namespace muster
