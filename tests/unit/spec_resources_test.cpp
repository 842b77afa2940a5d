// SPDX-License-Identifier: Apache-2.0

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/cluster_file.hpp"
#include "spec/hostlist.hpp"
#include "spec/load_spec.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

const std::string kSpace = "space: {big: {choice: [true, false]}, lr: {uniform: [0, 1]}}\n";

std::string request(const std::string& text) {
    const ExperimentSpec spec = spec_of(kRuns + text);
    return spec.resources.empty() ? "" : to_string(spec.resources[0].group);
}

TEST(SpecResourcesTest, RequestsMeanWhatTheySay) {
    EXPECT_EQ(request(""), "{cpu: 1}");
    EXPECT_EQ(request("resources: {}"), "{cpu: 1}");
    EXPECT_EQ(request("resources: {gpu: 1}"), "{gpu: 1}");
    EXPECT_EQ(request("resources: {gpu: 0}"), "{}");
    EXPECT_EQ(
        request("resources: {cpu: 0.3333, memory: 1.5GiB, a/b: 2}"),
        "{cpu: 0.3333, memory: 1536MiB, a/b: 2}"
    );
    EXPECT_EQ(
        request("placement_group: {bundles: [{cpu: 1}, {cpu: 4, gpu: 1}], strategy: STRICT_SPREAD}"
        ),
        "[{cpu: 1}, {cpu: 4, gpu: 1}] STRICT_SPREAD"
    );
    EXPECT_EQ(
        request("resources: {placement_group: {bundles: [{}, {cpu: 2}]}}"), "[{}, {cpu: 2}] PACK"
    );
}

TEST(SpecResourcesTest, AlternativesAreTakenByConfig) {
    const ExperimentSpec spec = spec_of(
        kRuns + kSpace +
        "resources:\n  - {when: {big: true}, placement_group: {bundles: [{cpu: 1}, {gpu: 1}]}}\n"
        "  - {cpu: 2}\n"
    );

    ASSERT_EQ(spec.resources.size(), 2U);
    EXPECT_EQ(spec.resources[0].when, (Conditions{{"big", {true}}}));
    EXPECT_EQ(to_string(spec.resources[0].group), "[{cpu: 1}, {gpu: 1}] PACK");
    EXPECT_TRUE(spec.resources[1].when.empty());
}

TEST(SpecResourcesTest, WhatNoClusterCouldMeanIsRefused) {
    const auto message = [](const std::string& text) { return refused(kRuns + text); };
    EXPECT_THAT(
        message("resources: {gpu: 1.5}"),
        testing::AllOf(HasSubstr("sweep.yaml:2:12: resources: "), HasSubstr("1.5"))
    );
    EXPECT_EQ(message("resources: {cpu: -1}"), "sweep.yaml:2:18: resources.cpu: -1 is negative");
    EXPECT_THAT(
        message("resources: {cpu: 0.12345}"),
        HasSubstr("resources.cpu: 0.12345 has more than four decimals")
    );
    EXPECT_THAT(
        message("resources: {cpu: .nan}"), HasSubstr("resources.cpu: nan is not an amount")
    );
    EXPECT_THAT(
        message("resources: {cpu: two}"),
        HasSubstr("resources.cpu: expected a number, found the text 'two'")
    );
    EXPECT_THAT(
        message("resources: {memory: 5 apples}"), HasSubstr("sweep.yaml:2:21: resources.memory: ")
    );
    EXPECT_THAT(message("resources: {memory: [1]}"), HasSubstr("expected bytes such as 2GiB"));
    EXPECT_EQ(
        message("resources: {cpus: 2}"),
        "sweep.yaml:2:13: resources.cpus: unknown key 'cpus'; did you mean 'cpu'?"
    );
    EXPECT_THAT(message("resources: {2x: 1}"), HasSubstr("'2x' is no resource"));
    EXPECT_THAT(
        message("resources: 4"), HasSubstr("resources: expected a map such as {cpu: 2, gpu: 1}")
    );
    EXPECT_THAT(
        message("placement_group: {bundles: [{cpu: 1}, {}]}"),
        HasSubstr("placement_group.bundles: bundle 1 asks for nothing")
    );
    EXPECT_THAT(
        message("placement_group: {strategy: PACK}"),
        HasSubstr("placement_group.bundles: expected a list of bundles")
    );
    EXPECT_THAT(
        message("placement_group: {bundles: [{cpu: 1}], strategy: pack}"),
        HasSubstr("expected PACK, SPREAD, STRICT_PACK or STRICT_SPREAD")
    );
    EXPECT_THAT(
        message("resources: {cpu: 1}\nplacement_group: {bundles: [{cpu: 1}]}"),
        HasSubstr(
            "sweep.yaml:3:18: placement_group: `resources` is there as well; keep one of the two"
        )
    );
    EXPECT_THAT(
        message("resources: {cpu: 1, placement_group: {bundles: [{cpu: 1}]}}"),
        HasSubstr("amounts stand beside it")
    );
    EXPECT_THAT(message("reserve: {gpu: 0.5}"), HasSubstr("reserve: gpu must be whole"));
    EXPECT_THAT(
        message("cluster_resources: {cpu: 4}"), HasSubstr("only custom resources are declared here")
    );
    EXPECT_THAT(
        message("nodes: {'n[1-': {a: 1}}"),
        HasSubstr("nodes.n[1-: 'n[1-' has a bracket without its other half")
    );
}

TEST(SpecResourcesTest, AConfigThatNoAlternativeTakesIsFoundWhenItCanBe) {
    EXPECT_EQ(
        refused(kRuns + kSpace + "resources: [{when: {big: true}, gpu: 1}]"),
        "sweep.yaml:3:12: resources: no alternative is for big=false; add a last one without `when`"
    );
    EXPECT_EQ(
        spec_of(kRuns + kSpace + "resources: [{when: {big: true}, gpu: 1}, {when: {big: false}}]")
            .resources.size(),
        2U
    );
    // Nobody can list the values of lr: such a trial fails when it comes.
    EXPECT_EQ(
        spec_of(kRuns + kSpace + "resources: [{when: {lr: 0.5}, gpu: 1}]").resources.size(), 1U
    );
    EXPECT_THAT(
        refused(kRuns + kSpace + "resources: [{gpu: 1}, {when: {big: true}}]"),
        HasSubstr("resources[0]: without `when` those after it are never taken")
    );
    EXPECT_THAT(
        refused(kRuns + kSpace + "resources: [{when: {bigg: true}, gpu: 1}, {cpu: 1}]"),
        testing::EndsWith("resources[0].when.bigg: no key of the space; did you mean 'big'?")
    );
    EXPECT_THAT(refused(kRuns + "resources: []"), HasSubstr("an empty list has no alternative"));
}

TEST(SpecResourcesTest, HostListsAreSpeltOut) {
    EXPECT_EQ(
        *expand_hostlist("gpu[08-10,3],login,r[1-2]n[1-2]"),
        (std::vector<std::string>{
            "gpu08", "gpu09", "gpu10", "gpu3", "login", "r1n1", "r1n2", "r2n1", "r2n2"})
    );
    for (const char* wrong :
         {"",
          "a,",
          "a[",
          "a]",
          "a[]",
          "a[3-1]",
          "a[x]",
          "a b",
          "n[0-999999]",
          "n[0-999][0-999]",
          "a]1[",
          "n[1-99999999999999999999]"}) {
        EXPECT_FALSE(expand_hostlist(wrong).ok()) << wrong;
    }
    EXPECT_FALSE(expand_hostlist(std::string(1'000'000, '[')).ok());
}

TEST(SpecResourcesTest, AClusterFileNamesNodes) {
    const Result<std::vector<NodeInventory>> nodes = parse_cluster(
        "nodes:\n  - {name: \"gpu[01-02]\", cpu: 4, gpu: 2, memory: 8GiB, nvme: 1}\n"
        "  - {name: login, cpu: 0.5}\n",
        "cluster.yaml"
    );

    ASSERT_TRUE(nodes.ok()) << nodes.error().message;
    ASSERT_EQ(nodes->size(), 3U);
    EXPECT_EQ((*nodes)[1].name, "gpu02");
    EXPECT_EQ(to_string((*nodes)[1].total()), "{cpu: 4, gpu: 2, memory: 8GiB, nvme: 1}");
    EXPECT_EQ((*nodes)[2].cores.size(), 1U);
}

TEST(SpecResourcesTest, AClusterFileIsCheckedAsSpecsAre) {
    const auto message = [](const std::string& text) {
        const Result<std::vector<NodeInventory>> nodes = parse_cluster(text, "c.yaml");
        return nodes.ok() ? "nothing is wrong" : nodes.error().message;
    };
    EXPECT_THAT(message(""), HasSubstr("c.yaml:1:1: expected a map {nodes:"));
    EXPECT_THAT(message("nodes: []"), HasSubstr("c.yaml:1:8: nodes: expected a list of nodes"));
    EXPECT_THAT(
        message("node: [{name: a}]"), HasSubstr("node: unknown key 'node'; did you mean 'nodes'?")
    );
    EXPECT_THAT(message("nodes: [{cpu: 1}]"), HasSubstr("nodes[0].name: missing"));
    EXPECT_THAT(message("nodes: [{name: a, cpus: 1}]"), HasSubstr("did you mean 'cpu'?"));
    EXPECT_THAT(
        message("nodes: [{name: a, gpu: 0.5}]"), HasSubstr("nodes[0].gpu: a node has whole devices")
    );
    EXPECT_THAT(message("nodes: [{name: 'a,a'}]"), HasSubstr("the node a is there already"));
    EXPECT_THAT(message("nodes: [{name: a, cpu: 1e9}]"), HasSubstr("at most"));
    EXPECT_THAT(message("nodes: [{name: 'n[1-99999]', cpu: 60000}]"), HasSubstr("more than"));
}

}  // namespace
}  // namespace muster
