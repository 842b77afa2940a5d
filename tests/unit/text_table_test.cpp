// SPDX-License-Identifier: Apache-2.0

#include "cli/text_table.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TextTableTest, NumbersStandToTheRightAndTextToTheLeft) {
    TextTable table({"trial", "state", "loss"});
    table.add_row({"00001", "Completed", "0.5"});
    table.add_row({"00002", "Failed", "12.25"});

    EXPECT_EQ(
        table.text(),
        "trial  state       loss\n"
        "00001  Completed    0.5\n"
        "00002  Failed     12.25\n"
    );
}

TEST(TextTableTest, MissingCellsAreEmptyAndLinesHaveNoBlanksAtTheirEnd) {
    TextTable table({"a", "b"});
    table.add_row({"x"});

    EXPECT_EQ(table.text(), "a  b\nx\n");
}

TEST(TextTableTest, WidthCountsCharactersNotBytes) {
    EXPECT_EQ(display_width("größer"), 6U);
    EXPECT_EQ(fit("größer", 6), "größer");
    EXPECT_EQ(fit("größer", 4), "grö…");
    EXPECT_EQ(fit("größer", 1), "…");
    EXPECT_EQ(fit("größer", 0), "");
}

TEST(TextTableTest, NothingThatATrialSaysSteersTheTerminal) {
    EXPECT_EQ(fit("\x1b[2J\tx\n", 80), "?[2J?x?");
}

TEST(TextTableTest, LinesAreCutToTheWidth) {
    TextTable table({"config"});
    table.add_row({"lr=0.1 hidden=64"});

    EXPECT_EQ(table.lines(8).back(), "lr=0.1 …");
}

}  // namespace
}  // namespace muster
