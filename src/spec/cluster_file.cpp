// SPDX-License-Identifier: Apache-2.0

#include "spec/cluster_file.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "resources/logical_node.hpp"
#include "spec/document.hpp"
#include "spec/hostlist.hpp"
#include "spec/problems.hpp"
#include "spec/read_resources.hpp"
#include "spec/section.hpp"
#include "spec/source_text.hpp"

namespace muster {
namespace {

constexpr std::size_t kMostNodes = 100'000;

/// Reads the entries of `nodes:`, one or many nodes each.
class ClusterReader {
  public:
    explicit ClusterReader(Problems& problems) : problems_(problems) {}

    void read(const YamlNode& entry, const std::string& path) {
        if (!entry.is_map()) {
            problems_.add(entry.place, path, expected("a map such as {name: n1, cpu: 4}", entry));
            return;
        }
        const YamlNode* name = entry.find("name");
        const std::size_t before = problems_.count();
        const ResourceSet resources = read_amounts(entry, path, {"name"}, problems_);
        if (name == nullptr || !name->is_scalar()) {
            problems_.add(entry.place, path + ".name", "missing; names look like gpu[01-04]");
            return;
        }
        if (problems_.count() == before && !resources.gpu.is_whole()) {
            problems_.add(entry.place, path + ".gpu", "a node has whole devices");
        }
        const Result<std::vector<std::string>> names = expand_hostlist(name->text);
        if (!names) {
            problems_.add(name->place, path + ".name", names.error().message);
            return;
        }
        if (problems_.count() == before) {
            add(*names, resources, name->place, path + ".name");
        }
    }

    std::vector<NodeInventory> take() { return std::move(nodes_); }

  private:
    void add(
        const std::vector<std::string>& names,
        const ResourceSet& resources,
        Place place,
        const std::string& path
    ) {
        constexpr std::int64_t kMostDevices = 1024;
        constexpr std::int64_t kMostCores = 65'536;
        if (resources.gpu > Amount::whole(kMostDevices) ||
            resources.cpu > Amount::whole(kMostCores)) {
            problems_.add(
                place,
                path,
                fmt::format("a node has at most {} cpu and {} gpu", kMostCores, kMostDevices)
            );
            return;
        }
        const NodeInventory node = logical_node("", resources);
        cores_ += names.size() * (node.cores.size() + node.devices.size());
        constexpr std::size_t kMostCoresInAll = 20'000'000;
        if (nodes_.size() + names.size() > kMostNodes || cores_ > kMostCoresInAll) {
            problems_.add(
                place, path, fmt::format("more than {} nodes or 20 million cores", kMostNodes)
            );
            return;
        }
        for (const std::string& name : names) {
            if (!names_.insert(name).second) {
                problems_.add(place, path, fmt::format("the node {} is there already", name));
                return;
            }
            nodes_.push_back(node);
            nodes_.back().name = name;
        }
    }

    Problems& problems_;
    std::vector<NodeInventory> nodes_;
    std::set<std::string> names_;
    std::size_t cores_ = 0;
};

void read_cluster(const YamlNode& root, ClusterReader& reader, Problems& problems) {
    if (!root.is_map()) {
        problems.add(root.place, "", expected("a map {nodes: [{name: n1, cpu: 4}]}", root));
        return;
    }
    for (const Entry& entry : root.entries) {
        if (entry.key != "nodes") {
            problems.add(entry.place, entry.key, unknown_key(entry.key, {"nodes"}));
        }
    }
    const YamlNode* nodes = root.find("nodes");
    if (nodes == nullptr || !nodes->is_list() || nodes->items.empty()) {
        problems.add(
            nodes == nullptr ? root.place : nodes->place,
            "nodes",
            "expected a list of nodes such as [{name: \"gpu[01-04]\", cpu: 64, gpu: 8}]"
        );
        return;
    }
    for (std::size_t index = 0; index < nodes->items.size(); ++index) {
        reader.read(nodes->items[index], fmt::format("nodes[{}]", index));
    }
}

}  // namespace

Result<std::vector<NodeInventory>> parse_cluster(std::string_view text, const std::string& path) {
    Problems problems(path, {});
    YamlNode root;
    ClusterReader reader(problems);
    if (read_document(text, root, problems)) {
        read_cluster(root, reader, problems);
    }
    if (!problems.empty()) {
        return problems.error();
    }
    return reader.take();
}

Result<std::vector<NodeInventory>> load_cluster(const std::string& path) {
    const Result<std::string> text = read_text_file(path);
    if (!text) {
        return text.error();
    }
    return parse_cluster(*text, path);
}

}  // namespace muster
