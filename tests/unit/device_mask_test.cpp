// SPDX-License-Identifier: Apache-2.0

#include "probe/device_mask.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<NvidiaGpu> eight_gpus() {
    std::vector<NvidiaGpu> gpus;
    for (std::uint32_t index = 0; index < 8; ++index) {
        const std::string digit = std::to_string(index);
        gpus.push_back(
            {.uuid = "GPU-8932f93" + digit + "-d72c-4106", .model = "H200", .numa_node = index / 4}
        );
    }
    return gpus;
}

std::vector<std::string> labels(std::optional<std::string_view> mask) {
    const auto devices = visible_devices(mask, eight_gpus());
    EXPECT_TRUE(devices.ok()) << devices.error().message;
    std::vector<std::string> names;
    for (const Device& device : devices.value()) {
        names.push_back(device.label);
    }
    return names;
}

std::string refusal(std::string_view mask) {
    const auto devices = visible_devices(mask, eight_gpus());
    EXPECT_FALSE(devices.ok());
    return devices.ok() ? "" : devices.error().message;
}

TEST(DeviceMaskTest, WithoutAMaskEveryDeviceIsThere) {
    EXPECT_THAT(labels(std::nullopt), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
}

TEST(DeviceMaskTest, EmptyMinusOneAndNoDevFilesShowNothing) {
    EXPECT_THAT(labels(""), IsEmpty());
    EXPECT_THAT(labels("-1"), IsEmpty());
    EXPECT_THAT(labels("NoDevFiles"), IsEmpty());
}

TEST(DeviceMaskTest, AListKeepsItsOrderAndSpelling) {
    EXPECT_THAT(labels("4,5,6,7"), ElementsAre("4", "5", "6", "7"));
    EXPECT_THAT(labels("7,0"), ElementsAre("7", "0"));
}

TEST(DeviceMaskTest, TheListEndsAtTheFirstInvalidEntry) {
    EXPECT_THAT(labels("0,2,-1,1"), ElementsAre("0", "2"));
    EXPECT_THAT(labels("0,,1"), ElementsAre("0"));
    EXPECT_THAT(labels("3,NoDevFiles,1"), ElementsAre("3"));
}

TEST(DeviceMaskTest, AnIndexThatIsNotThereEndsTheList) {
    EXPECT_THAT(labels("1,8,2"), ElementsAre("1"));
    EXPECT_THAT(labels("99999999999999999999999"), IsEmpty());
}

TEST(DeviceMaskTest, NamesAreKeptAsText) {
    EXPECT_THAT(labels("GPU-8932f937-d72c-4106"), ElementsAre("GPU-8932f937-d72c-4106"));
    EXPECT_THAT(
        labels("MIG-11111111-2222,MIG-33333333-4444"),
        ElementsAre("MIG-11111111-2222", "MIG-33333333-4444")
    );
}

TEST(DeviceMaskTest, AShortenedNameIsTheGpuThatItBegins) {
    const auto devices = visible_devices("GPU-8932f936", eight_gpus());

    ASSERT_TRUE(devices.ok());
    EXPECT_EQ(
        devices.value(),
        (std::vector<Device>{
            {.label = "GPU-8932f936", .kind = DeviceKind::Cuda, .numa_node = 1, .model = "H200"}})
    );
}

TEST(DeviceMaskTest, ANameThatIsNotThereEndsTheList) {
    EXPECT_THAT(labels("0,GPU-ffffffff,1"), ElementsAre("0"));
}

TEST(DeviceMaskTest, NamesAreTakenOnTrustWhenTheDriverGivesNone) {
    const auto devices = visible_devices("GPU-ffffffff", {NvidiaGpu{}});

    ASSERT_TRUE(devices.ok());
    EXPECT_EQ(devices->size(), 1U);
}

TEST(DeviceMaskTest, ADeviceNamedTwiceIsRefused) {
    EXPECT_THAT(refusal("1,1"), HasSubstr("CUDA_VISIBLE_DEVICES=\"1,1\": \"1\" names a device"));
    EXPECT_THAT(refusal("0,GPU-8932f930"), HasSubstr("second time"));
    EXPECT_THAT(refusal("MIG-1,MIG-1"), HasSubstr("second time"));
}

TEST(DeviceMaskTest, ADuplicateBehindTheEndOfTheListDoesNotMatter) {
    EXPECT_THAT(labels("1,-1,1"), ElementsAre("1"));
}

TEST(DeviceMaskTest, BlanksAreIgnored) {
    EXPECT_THAT(labels(" 1, 2"), ElementsAre("1", "2"));
}

TEST(DeviceMaskTest, ARangeIsNotAList) {
    EXPECT_THAT(refusal("0-3"), HasSubstr("\"0-3\" is no device; write a list such as"));
}

TEST(DeviceMaskTest, OtherTextIsRefusedWithTheEntry) {
    EXPECT_THAT(refusal("0,all"), HasSubstr("\"all\" is no device"));
}

}  // namespace
}  // namespace muster
