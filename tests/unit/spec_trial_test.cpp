// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "spec/load_spec.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

/// A directory of its own for a test, removed at its end.
class SpecFilesTest : public testing::Test {
  protected:
    SpecFilesTest() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "muster-spec-XXXXXX").string();
        EXPECT_NE(mkdtemp(pattern.data()), nullptr);
        dir_ = pattern;
    }
    ~SpecFilesTest() override { std::filesystem::remove_all(dir_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
    }

    std::string dir_;
};

TEST(SpecTrialTest, ACommandAsTextIsShownAsAList) {
    EXPECT_EQ(
        refused("trial: {command: 'python3 train.py --lr {lr}'}"),
        "sweep.yaml:1:18: trial.command: a command is a list: [python3, train.py, --lr, \"{lr}\"]; "
        "for a line with pipes and variables use trial.shell"
    );
}

TEST(SpecTrialTest, APlaceholderNeedsQuotes) {
    EXPECT_EQ(
        refused("trial: {command: [run, {lr}]}\nspace: {lr: 1}"),
        "sweep.yaml:1:24: trial.command[1]: {lr} needs quotes: \"{lr}\""
    );
    EXPECT_THAT(
        refused("trial: {command: [run, --lr={lr}]}\nspace: {lr: 1}"),
        HasSubstr("quotes round text with any of {}[],:#")
    );
}

TEST(SpecTrialTest, PlaceholdersAreCheckedWhereTheyStand) {
    EXPECT_EQ(
        refused("trial:\n  command: [run, '{lrr}', '{\"a\": 1}']\n  env: {A: '{x}'}\nspace: {lr: 1}"
        ),
        "sweep.yaml:2:18: trial.command[1]: {lrr} at character 1 names no key of the space (did "
        "you "
        "mean {lr}?); write {{lrr}} for the text itself\n"
        "sweep.yaml:2:27: trial.command[2]: '{' at character 1 belongs to no placeholder; write {{ "
        "for the brace itself\n"
        "sweep.yaml:3:12: trial.env.A: {x} at character 1 names no key of the space; write {{x}} "
        "for "
        "the text itself"
    );
    EXPECT_THAT(
        refused("trial: {shell: 'echo \"{lr}\"'}\nspace: {lr: 1}"),
        HasSubstr("trial.shell: {lr} at character 7 is inside double quotes")
    );
}

TEST(SpecTrialTest, CommandAndShellExcludeEachOther) {
    EXPECT_EQ(
        refused("trial: {command: [a], shell: b}"),
        "sweep.yaml:1:30: trial.shell: `command` is there as well; keep one of the two"
    );
    EXPECT_THAT(
        refused("trial: {command: []}"), HasSubstr("the program, its first element, is missing")
    );
    EXPECT_THAT(refused("trial: {command: ['']}"), HasSubstr("is missing"));
    EXPECT_THAT(refused("trial: {shell: ' '}"), HasSubstr("the line is empty"));
    EXPECT_THAT(
        refused("trial: {command: [a, ~]}"),
        HasSubstr("trial.command[1]: expected text, found null; quotes make it text")
    );
    EXPECT_THAT(
        refused("trial: {command: [a, [b]]}"),
        HasSubstr("trial.command[1]: expected text, found a list")
    );
}

TEST(SpecTrialTest, VariablesHaveNames) {
    EXPECT_THAT(
        refused("trial: {command: [a], env: {'A=B': 1}}"),
        HasSubstr("trial.env.A=B: a variable's name")
    );
    EXPECT_THAT(
        refused("trial: {command: [a], env: {MUSTER_SOCKET: 1}}"), HasSubstr("are muster's own")
    );
    EXPECT_THAT(
        refused("trial: {command: [a], env: {A: [1]}}"),
        HasSubstr("trial.env.A: expected text, found a list")
    );
    EXPECT_THAT(refused("trial: {command: [a], env: [A]}"), HasSubstr("trial.env: expected a map"));
}

TEST(SpecTrialTest, PatternsAreCompiled) {
    const auto message = [](const std::string& metrics) {
        return refused("trial:\n  command: [a]\n  metrics: " + metrics);
    };
    EXPECT_THAT(
        message("{pattern: 'acc=('}"),
        HasSubstr(
            "sweep.yaml:3:22: trial.metrics.pattern: RE2 does not take the expression: missing )"
        )
    );
    EXPECT_THAT(
        message("{pattern: '(?<acc>x)'}"), HasSubstr("a named group is written (?P<name>…)")
    );
    EXPECT_THAT(message("{pattern: 'acc=(.*)'}"), HasSubstr("no group has a name"));
    EXPECT_THAT(message("{from: stdout}"), HasSubstr("trial.metrics.pattern: missing"));
    EXPECT_THAT(
        message("[{from: file, pattern: '(?P<a>x)'}]"), HasSubstr("trial.metrics[0].path: missing")
    );
    EXPECT_THAT(message("{path: x, pattern: '(?P<a>x)'}"), HasSubstr("a path needs `from: file`"));
    EXPECT_THAT(
        message("{from: stderr}"), HasSubstr("expected stdout or file, found the text 'stderr'")
    );
    EXPECT_THAT(message("stdout"), HasSubstr("trial.metrics: expected a map"));
}

TEST(SpecTrialTest, ATrialThatNeedsItsDirectoryCannotGoWithout) {
    EXPECT_THAT(
        refused("trial: {command: [a, '{muster.trial_dir}'], trial_dir: never}"),
        HasSubstr("trial.trial_dir: 'never', but workdir, files or {muster.trial_dir} need")
    );
    EXPECT_EQ(spec_of("trial: {command: [a], trial_dir: never}").trial.trial_dir, TrialDir::Never);
}

TEST_F(SpecFilesTest, PathsAreRelativeToTheSpec) {
    std::filesystem::create_directory(dir_ + "/work");
    write("run.nml.in", "lr = {lr}\n");
    write(
        "tune.yaml",
        "trial: {command: [a], workdir: ./work/, files: {in/run.nml: run.nml.in}}\nspace: {lr: 1}"
    );

    const Result<ExperimentSpec> spec = load_spec("tune.yaml", {}, LoadOptions{dir_});

    ASSERT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_EQ(spec->name, "tune");
    EXPECT_EQ(spec->trial.workdir, dir_ + "/work");
    EXPECT_EQ(
        spec->trial.files,
        (std::vector<TemplateFile>{{"in/run.nml", dir_ + "/run.nml.in", "lr = {lr}\n"}})
    );
    EXPECT_EQ(spec->storage_path, dir_ + "/results");
}

TEST_F(SpecFilesTest, WhatIsWrongWithAFileIsToldAtItsKey) {
    write("latin", "# caf\xE9\n");
    write("braces", "x = {y}\n");
    write(
        "tune.yaml",
        "trial:\n  command: [a]\n  workdir: nowhere\n  files:\n    a: gone\n    b: latin\n    c: "
        "braces\n"
        "    ../d: braces\n    e: {text: x}\n"
    );

    const Result<ExperimentSpec> spec = load_spec("tune.yaml", {}, LoadOptions{dir_});

    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(
        spec.error().message,
        "tune.yaml:3:12: trial.workdir: " + dir_ +
            "/nowhere is no directory\n"
            "tune.yaml:5:8: trial.files.a: " +
            dir_ +
            "/gone: No such file or directory\n"
            "tune.yaml:6:5: trial.files.b: " +
            dir_ +
            "/latin:1:6: a template must be UTF-8 text\n"
            "tune.yaml:7:5: trial.files.c: " +
            dir_ +
            "/braces: {y} at character 5 names no key of the "
            "space; write {{y}} for the text itself\n"
            "tune.yaml:8:5: trial.files.../d: a file is written into the trial's directory; give a "
            "path "
            "below it\n"
            "tune.yaml:9:8: trial.files.e: expected a path, or {content: text}\n"
            "tune.yaml:9:9: trial.files.e.text: unknown key 'text'; known here are source and "
            "content"
    );
}

}  // namespace
}  // namespace muster
