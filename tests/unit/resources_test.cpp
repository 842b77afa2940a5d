// SPDX-License-Identifier: Apache-2.0

#include "muster/resources.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resources/logical_node.hpp"

namespace muster {
namespace {

using ::testing::HasSubstr;

Amount amount(double value) {
    return Amount::from_real(value).value();
}

PlacementGroupSpec group(std::vector<Bundle> bundles) {
    return PlacementGroupSpec{.bundles = std::move(bundles)};
}

TEST(AmountTest, ATenthAndTwoTenthsAreThreeTenths) {
    EXPECT_EQ(amount(0.1) + amount(0.2), amount(0.3));
    EXPECT_EQ(amount(0.1 + 0.2), amount(0.3));
}

TEST(AmountTest, IsRoundedToNearestAndNotCut) {
    EXPECT_EQ(amount(0.57).ten_thousandths(), 5700);
    EXPECT_EQ(amount(0.29).ten_thousandths(), 2900);
    EXPECT_EQ(amount(1.1).ten_thousandths(), 11'000);
}

TEST(AmountTest, EveryFourDecimalValueIsExact) {
    for (std::int64_t i = 0; i <= 20'000; ++i) {
        EXPECT_EQ(amount(static_cast<double>(i) / 10'000), Amount::ten_thousandths(i));
    }
}

TEST(AmountTest, AThirdWithFourDecimalsFitsThreeTimesInOne) {
    const Amount third = amount(0.3333);

    EXPECT_LE(third + third + third, Amount::whole(1));
}

TEST(AmountTest, ThreeTimesAThirdOfAPoolLeavesExactlyNothing) {
    Amount pool = amount(0.99);

    for (int i = 0; i < 3; ++i) {
        pool -= amount(0.33);
    }

    EXPECT_TRUE(pool.is_zero());
}

TEST(AmountTest, LargeValuesKeepTheirDecimals) {
    EXPECT_EQ(amount(123'456'789.1).ten_thousandths(), 1'234'567'891'000);
    EXPECT_EQ(amount(9e14).ten_thousandths(), 9'000'000'000'000'000'000);
}

TEST(AmountTest, RefusesWhatIsNoAmountAndNamesTheValue) {
    EXPECT_THAT(Amount::from_real(0.33333).error().message, HasSubstr("0.33333 has more than"));
    EXPECT_THAT(Amount::from_real(1.0 / 3).error().message, HasSubstr("four decimals"));
    EXPECT_THAT(Amount::from_real(-1).error().message, HasSubstr("-1 is negative"));
    EXPECT_THAT(Amount::from_real(std::nan("")).error().message, HasSubstr("nan"));
    EXPECT_THAT(
        Amount::from_real(std::numeric_limits<double>::infinity()).error().message, HasSubstr("inf")
    );
    EXPECT_FALSE(Amount::from_real(1e16).ok());
}

TEST(AmountTest, ToleratesOnlyAMillionthOfItsUnit) {
    EXPECT_TRUE(Amount::from_real(0.5 + 0.9e-10).ok());
    EXPECT_FALSE(Amount::from_real(0.5 + 1.1e-10).ok());
}

TEST(AmountTest, IsWrittenAsShortAsItIsExact) {
    EXPECT_EQ(to_string(Amount::whole(2)), "2");
    EXPECT_EQ(to_string(amount(0.5)), "0.5");
    EXPECT_EQ(to_string(amount(0.3333)), "0.3333");
    EXPECT_EQ(to_string(amount(10.05)), "10.05");
    EXPECT_EQ(to_string(Amount{}), "0");
    EXPECT_EQ(to_string(Amount{} - amount(0.25)), "-0.25");
}

TEST(BytesTest, AreReadWithTheirUnits) {
    EXPECT_EQ(parse_bytes("2GiB").value(), 2'147'483'648);
    EXPECT_EQ(parse_bytes("500MB").value(), 500'000'000);
    EXPECT_EQ(parse_bytes("1.5 GiB").value(), 1'610'612'736);
    EXPECT_EQ(parse_bytes("4096").value(), 4096);
    EXPECT_EQ(parse_bytes("10PB").value(), 10'000'000'000'000'000);
    EXPECT_EQ(parse_bytes(" 3 kb ").value(), 3000);
    EXPECT_EQ(parse_bytes("7B").value(), 7);
}

TEST(BytesTest, RefusesWhatIsNoSizeAndNamesTheUnits) {
    for (const char* text :
         {"", "GiB", "-1", "2 GiBs", "1e3", "nan", "1.2.3", "2Gi", "9999999PiB", "9e18.5PB", "."}) {
        const auto bytes = parse_bytes(text);
        ASSERT_FALSE(bytes.ok()) << text;
        EXPECT_EQ(bytes.error().code, ErrorCode::InvalidInput);
        EXPECT_THAT(bytes.error().message, HasSubstr("KiB, MiB, GiB"));
    }
}

TEST(BytesTest, AreWrittenInTheLargestUnitThatSuits) {
    EXPECT_EQ(format_bytes(2'147'483'648), "2GiB");
    EXPECT_EQ(format_bytes(500'000'000), "500MB");
    EXPECT_EQ(format_bytes(1536), "1536");
    EXPECT_EQ(format_bytes(0), "0");
    EXPECT_EQ(format_bytes(1'610'612'736), "1536MiB");
    EXPECT_EQ(format_bytes(1'234'567'890), "1.15GiB");
    EXPECT_EQ(format_bytes(10'000'000'000'000'000), "10PB");
}

TEST(ResourceSetTest, KeepsCustomResourcesSortedAndWithoutZeros) {
    ResourceSet set;
    set.set_custom("nvme", Amount::whole(4));
    set.set_custom("licence", Amount::whole(1));
    set.set_custom("nvme", Amount::whole(3));
    set.set_custom("absent", Amount{});

    EXPECT_EQ(
        set.custom,
        (std::vector<NamedAmount>{{"licence", Amount::whole(1)}, {"nvme", Amount::whole(3)}})
    );
    EXPECT_EQ(set.custom_amount("nvme"), Amount::whole(3));
    EXPECT_TRUE(set.custom_amount("absent").is_zero());

    set.set_custom("licence", Amount{});
    set.set_custom("nvme", Amount{});
    EXPECT_TRUE(set.is_zero());
}

TEST(ResourceSetTest, IsWrittenAsTheUserWouldWriteIt) {
    ResourceSet set{.cpu = Amount::whole(2), .gpu = amount(0.5), .memory_bytes = 2'147'483'648};
    set.set_custom("licence", Amount::whole(1));

    EXPECT_EQ(to_string(set), "{cpu: 2, gpu: 0.5, memory: 2GiB, licence: 1}");
    EXPECT_EQ(to_string(ResourceSet{}), "{}");
    EXPECT_EQ(
        to_string(group({Bundle{.cpu = Amount::whole(1)}, Bundle{.gpu = Amount::whole(1)}})),
        "[{cpu: 1}, {gpu: 1}] PACK"
    );
    EXPECT_EQ(to_string(PlacementGroupSpec{}), "{cpu: 1}");
}

TEST(PlacementGroupTest, DefaultsToOneCpu) {
    EXPECT_EQ(PlacementGroupSpec{}.bundles, std::vector<Bundle>{Bundle{.cpu = Amount::whole(1)}});
}

TEST(PlacementGroupTest, AZeroEntryIsTheSameAsNone) {
    Bundle written{.cpu = Amount::whole(1), .gpu = Amount{}};
    written.set_custom("licence", Amount{});

    EXPECT_EQ(written, Bundle{.cpu = Amount::whole(1)});
}

TEST(PlacementGroupTest, AllZeroAndAnEmptyFirstBundleAreAllowed) {
    EXPECT_TRUE(validate(group({Bundle{}})).ok());
    EXPECT_TRUE(validate(group({Bundle{}, Bundle{.cpu = Amount::whole(1)}})).ok());
}

TEST(PlacementGroupTest, RefusesNoBundleAndAnEmptyOneElsewhere) {
    EXPECT_THAT(validate(group({})).error().message, HasSubstr("at least one bundle"));
    EXPECT_THAT(
        validate(group({Bundle{.cpu = Amount::whole(1)}, Bundle{}})).error().message,
        HasSubstr("bundle 1 asks for nothing")
    );
}

TEST(PlacementGroupTest, RefusesAPartOfSeveralGpus) {
    EXPECT_THAT(
        validate(group({Bundle{.gpu = amount(1.5)}})).error().message,
        HasSubstr("gpu: 1.5 is not possible")
    );
    EXPECT_THAT(
        validate(group({Bundle{}, Bundle{.gpu = amount(2.25)}})).error().message,
        HasSubstr("bundle 1: gpu: 2.25")
    );
    EXPECT_TRUE(validate(group({Bundle{.gpu = amount(0.9999)}})).ok());
    EXPECT_TRUE(validate(group({Bundle{.gpu = Amount::whole(16)}})).ok());
}

TEST(PlacementGroupTest, RefusesNegativeAmountsAndBadNames) {
    const auto refused = [](const Bundle& bundle) {
        return validate(group({bundle})).error().message;
    };

    EXPECT_THAT(refused(Bundle{.cpu = Amount::whole(-1)}), HasSubstr("cpu: -1 is negative"));
    EXPECT_THAT(refused(Bundle{.memory_bytes = -5}), HasSubstr("memory: -5 is negative"));
    EXPECT_THAT(refused(Bundle{.custom = {{"1x", amount(1)}}}), HasSubstr("\"1x\" cannot name"));
    EXPECT_THAT(
        refused(Bundle{.custom = {{"b", amount(1)}, {"a", amount(1)}}}),
        HasSubstr("a comes after b")
    );
}

TEST(LogicalNodeTest, IsReadFromAmounts) {
    ResourceSet expected{
        .cpu = Amount::whole(4), .gpu = Amount::whole(2), .memory_bytes = 8'589'934'592};
    expected.set_custom("licence", Amount::whole(3));

    EXPECT_EQ(parse_node_resources("cpu=4,gpu=2,memory=8GiB,licence=3").value(), expected);
    EXPECT_EQ(parse_node_resources("cpu=0.99").value(), ResourceSet{.cpu = amount(0.99)});
}

TEST(LogicalNodeTest, RefusalsNameThePart) {
    const auto refused = [](std::string_view text) {
        return parse_node_resources(text).error().message;
    };

    EXPECT_THAT(refused(""), HasSubstr("has no \"=\""));
    EXPECT_THAT(refused("cpu=4,"), HasSubstr("has no \"=\""));
    EXPECT_THAT(refused("cpu=four"), HasSubstr("\"cpu=four\": \"four\" is not a number"));
    EXPECT_THAT(refused("cpu=4,cpu=5"), HasSubstr("\"cpu=5\": names a resource again"));
    EXPECT_THAT(refused("gpu=1.5"), HasSubstr("whole number of GPUs"));
    EXPECT_THAT(refused("cpu=-1"), HasSubstr("negative"));
    EXPECT_THAT(refused("cpus=4"), HasSubstr("\"cpus=4\": the name is \"cpu\""));
    EXPECT_THAT(refused("a-b=1"), HasSubstr("cannot name a resource"));
    EXPECT_THAT(refused("memory=lots"), HasSubstr("\"lots\" is not a number of bytes"));
}

TEST(LogicalNodeTest, HasACoreForEveryBegunCpuAndDevicesByNumber) {
    const NodeInventory node =
        logical_node("a", parse_node_resources("cpu=2.5,gpu=2,memory=1GiB,x=1").value());

    EXPECT_EQ(node.cpu, amount(2.5));
    EXPECT_EQ(node.cores.size(), 3U);
    EXPECT_TRUE(node.cores.front().processing_units.empty());
    ASSERT_EQ(node.devices.size(), 2U);
    EXPECT_EQ(node.devices[1].label, "1");
    EXPECT_EQ(node.devices[1].kind, DeviceKind::Logical);
    EXPECT_EQ(to_string(node.total()), "{cpu: 2.5, gpu: 2, memory: 1GiB, x: 1}");
}

}  // namespace
}  // namespace muster
