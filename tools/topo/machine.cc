// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/machine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "plugin/config/environ.h"
#include "topology/read/file.h"
#include "topology/read/live.h"
#include "topology/read/sysfs.h"

namespace beeline::topo {
namespace {

using topology::Graph;
using topology::GraphParts;
using topology::Node;
using topology::NodeKind;

constexpr std::size_t kMostNamed = 12;  // devices in a message

// Whether the folder looks like /sys. Any other folder is a mistake of the user, not a machine
// without devices.
bool is_sysfs(const std::string& path) {
  const auto has = [&path](const char* name) { return ::access((path + name).c_str(), F_OK) == 0; };
  return has("/bus") || has("/class") || has("/devices");
}

Outcome<GraphParts> read_named(const Options& options) {
  const auto unreadable = [&options](const std::string& why) {
    return fail(fmt::format("{} {}: {}", options.from_option, options.from, why));
  };
  const std::string path = options.from == "-" ? "/dev/stdin" : options.from;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return unreadable(std::generic_category().message(errno) +
                      "; name NCCL's or hwloc's XML, or a folder like /sys");
  }
  const bool is_folder = S_ISDIR(found.st_mode);
  if (::access(path.c_str(), is_folder ? R_OK | X_OK : R_OK) != 0) {
    return unreadable(std::generic_category().message(errno) +
                      "; copy it to a place where you may read it");
  }
  if (!is_folder) return topology::read_topology_file(path);
  if (!is_sysfs(path)) {
    return unreadable(
        "there is no bus, class or devices in it; name a folder like /sys, or a file");
  }
  return topology::read_sysfs(path);
}

Outcome<GraphParts> read_parts(const Options& options) {
  if (!options.from.empty()) return read_named(options);
  const Environ environ = Environ::of_process();
  const auto root = environ.get("BEELINE_SYSFS_ROOT");
  GraphParts parts = topology::read_live(std::string(root.value_or("/sys")));
  // A host of softnic has a name; the folder that is its /sys says nothing to a reader.
  if (root && environ.get("SOFTNIC_HOST")) parts.source = *environ.get("SOFTNIC_HOST");
  return parts;
}

bool can_be_gpu(const Node& node) {
  return node.kind == NodeKind::kDevice && node.pci && node.role != topology::DeviceRole::kRdmaNic;
}

// The devices that --gpu could name.
std::string candidates(const GraphParts& parts) {
  std::string text;
  std::size_t count = 0;
  for (const Node& node : parts.nodes) {
    if (!can_be_gpu(node) || ++count > kMostNamed) continue;
    text += (text.empty() ? "" : ", ") + to_string(*node.pci);
  }
  if (count == 0) return "no other device could be one";
  return "candidates: " + text + (count > kMostNamed ? ", ..." : "");
}

Outcome<void> take_for_gpu(GraphParts& parts, const std::string& text) {
  const auto address = topology::parse_pci_address(text);
  if (!address) {
    return fail(fmt::format("--gpu {}: not a PCI address such as 0000:3b:00.0", text));
  }
  const auto found = std::ranges::find_if(parts.nodes, [&address](const Node& node) {
    return node.pci == address && node.kind != NodeKind::kHostBridge;
  });
  if (found == parts.nodes.end()) {
    return fail(
        fmt::format("--gpu {}: no such device in {}; {}", text, parts.source, candidates(parts)));
  }
  if (!can_be_gpu(*found)) {
    return fail(
        fmt::format("--gpu {}: that is {}, not a GPU; {}", text, label(*found), candidates(parts)));
  }
  found->role = topology::DeviceRole::kGpu;
  return {};
}

}  // namespace

Outcome<Graph> read_machine(const Options& options) {
  GraphParts parts = BL_TRY(read_parts(options));
  for (const std::string& gpu : options.gpus) BL_TRY(take_for_gpu(parts, gpu));
  const std::string source = parts.source;
  Outcome<Graph> graph = Graph::make(std::move(parts));
  if (!graph) return fail(fmt::format("{}: {}", source, graph.error().text));
  return graph;
}

}  // namespace beeline::topo
