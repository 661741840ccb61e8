// SPDX-License-Identifier: Apache-2.0
#include "topology/render/json.h"

#include <nlohmann/json.hpp>

#include "topology/distance.h"
#include "topology/findings.h"
#include "topology/nccl_choice.h"
#include "topology/path.h"
#include "topology/render/display_names.h"
#include "topology/render/report.h"

namespace beeline::topology {
namespace {

using Json = nlohmann::ordered_json;

void set_text(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

const char* word_of(BridgePort port) noexcept {
  switch (port) {
    case BridgePort::kUnknown: return "";
    case BridgePort::kRoot: return "root port";
    case BridgePort::kUpstream: return "upstream port";
    case BridgePort::kDownstream: return "downstream port";
    case BridgePort::kSwitch: return "switch";
  }
  return "";
}

Json json_of(const PcieLink& link) {
  Json json = Json::object();
  if (link.mega_transfers != 0) json["gt_per_s"] = link.mega_transfers / 1000.0;
  if (link.lanes != 0) json["lanes"] = link.lanes;
  return json;
}

void set_link(Json& json, const char* key, const PcieLink& link) {
  if (link != PcieLink()) json[key] = json_of(link);
}

Json json_of(const Graph& graph, const LinkState& link) {
  Json json = {{"node", link.node}};
  set_link(json, "now", link.now);
  set_link(json, "possible", link.possible);
  json["gigabytes_per_second"] = link.gigabytes_per_second();
  json["verdict"] = to_string(link.verdict);
  json["text"] = describe(graph, link);
  return json;
}

const char* word_of(GpuLinkKind kind) noexcept {
  switch (kind) {
    case GpuLinkKind::kNvLink: return "NVLink";
    case GpuLinkKind::kXgmi: return "xGMI";
    case GpuLinkKind::kC2c: return "C2C";
  }
  return "";
}

void set_gpu(Json& json, const GpuFacts& gpu) {
  if (gpu.number >= 0) json["number"] = gpu.number;
  if (gpu.sm >= 0) json["sm"] = gpu.sm;
  set_text(json, "gcn", gpu.gcn);
  for (const GpuLink& link : gpu.links) {
    Json entry = {{"kind", word_of(link.kind)}, {"count", link.count}};
    set_text(entry, "target", link.target);
    json["gpu_links"].push_back(std::move(entry));
  }
}

void set_device(Json& json, const Node& node) {
  json["role"] = to_string(node.role);
  if (node.physical_function != kNoNode) json["physical_function"] = node.physical_function;
  for (const OsDevice& device : node.os_devices) json["os_devices"].push_back(device.name);
  for (const NicPort& port : node.nic_ports) {
    Json entry = {{"number", port.number}};
    if (port.speed_mbps != 0) entry["speed_mbps"] = port.speed_mbps;
    if (port.state != PortState::kUnknown) {
      entry["state"] = port.state == PortState::kDown ? "down" : "active";
    }
    if (port.link_layer != LinkLayer::kUnknown) entry["link_layer"] = to_string(port.link_layer);
    json["ports"].push_back(std::move(entry));
  }
  set_text(json, "bond", node.bond);
  set_text(json, "uuid", node.uuid);
  set_gpu(json, node.gpu);
}

Json json_of(const Node& node, NodeIndex id) {
  Json json = {{"id", id}, {"kind", to_string(node.kind)}, {"label", label(node)}};
  if (node.parent != kNoNode) json["parent"] = node.parent;
  set_text(json, "name", node.name);
  if (node.number >= 0) json["number"] = node.number;
  if (node.numa >= 0) json["numa"] = node.numa;
  set_text(json, "cpus", node.cpus);
  if (node.pci) json["pci"] = to_string(*node.pci);
  if (node.pci_class != 0) json["pci_class"] = node.pci_class;
  if (node.vendor != 0) json["vendor"] = node.vendor;
  if (node.device != 0) json["device"] = node.device;
  set_text(json, "port", word_of(node.port));
  set_link(json, "link_now", node.link_now);
  set_link(json, "link_max", node.link_max);
  if (node.kind == NodeKind::kDevice) set_device(json, node);
  return json;
}

Json json_of(const NcclChoice& choice) {
  Json json = {{"nics", choice.nics}};
  if (choice.nics.empty()) return json;
  json["path"] = to_string(choice.path_type);
  if (choice.through != kNoNode) json["through"] = choice.through;
  json["gpu_direct"] = choice.gpu_direct;
  return json;
}

Json json_of(const Finding& finding) {
  Json json = {{"kind", to_string(finding.kind)}, {"severity", to_string(finding.severity)}};
  if (finding.device != kNoNode) json["node"] = finding.device;
  if (!finding.others.empty()) json["others"] = finding.others;
  json["cause"] = finding.cause;
  set_text(json, "fix", finding.fix);
  return json;
}

// Names come from files and firmware. Invalid UTF-8 is replaced, not refused.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

// Writes an object member by member, one line each. The lists that grow with GPUs times NICs are
// written as text, because a Json tree would take a minute and gigabytes for the largest machines.
class ObjectText {
 public:
  ObjectText(std::string& text, std::size_t indent) : text_(text), indent_(indent + 2, ' ') {
    text_ += '{';
  }

  // Returns the text to which the member's value is appended.
  std::string& add(const char* key) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    return text_ += indent_ + '"' + key + "\": ";
  }

  // Indents the lines. A JSON string contains no line break.
  void add(const char* key, const Json& value) {
    add(key);
    for (const char c : text_of(value)) {
      text_ += c;
      if (c == '\n') text_ += indent_;
    }
  }

  void close() { text_ += "\n" + indent_.substr(2) + "}"; }

 private:
  std::string& text_;
  std::string indent_;
  bool is_first_ = true;
};

// Writes a list in one line.
template <class List, class Write>
void add_list(std::string& text, const List& list, const Write& write) {
  const char* before = "[";
  for (const auto& entry : list) {
    text += before;
    write(text, entry);
    before = ", ";
  }
  text += list.empty() ? "[]" : "]";
}

void add_gpu(std::string& text, const Graph& graph, const DisplayNames& names,
             const Distances& distances, const GpuAssignment& given, const NcclChoice& choice) {
  ObjectText gpu(text, 4);
  gpu.add("name", names[given.gpu]);
  gpu.add("node", given.gpu);
  gpu.add("nics", given.nics);
  if (!given.nics.empty()) {
    gpu.add("distance", to_string(given.distance));
    const Path path = path_between(graph, given.gpu, given.nics.front());
    if (path.bottleneck) gpu.add("bottleneck", json_of(graph, *path.bottleneck));
  }
  add_list(gpu.add("standby"), given.standby,
           [](std::string& list, NodeIndex nic) { list += std::to_string(nic); });
  gpu.add("reason", given.reason);
  add_list(gpu.add("distances"), graph.nics(), [&](std::string& list, NodeIndex nic) {
    list += "{\"node\": " + std::to_string(nic) + ", \"distance\": \"";
    list += to_string(distances.between(given.gpu, nic));
    list += "\"}";
  });
  gpu.add("nccl", json_of(choice));
  gpu.close();
}

void add_gpus(std::string& text, const Graph& graph, const Assignment& assignment) {
  const DisplayNames names(graph);
  const Distances distances(graph);
  const std::vector<NcclChoice> choices = nccl_choices(graph);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += i == 0 ? "[\n    " : ",\n    ";
    add_gpu(text, graph, names, distances, assignment.gpus[i], choices[i]);
  }
  text += choices.empty() ? "[]" : "\n  ]";
}

}  // namespace

std::string to_json(const Graph& graph, const Assignment& assignment) {
  std::string text;
  ObjectText json(text, 0);
  json.add("source", graph.source());
  Json nodes = Json::array();
  for (NodeIndex i = 0; i < graph.size(); ++i) nodes.push_back(json_of(graph[i], i));
  json.add("nodes", nodes);
  add_gpus(json.add("gpus"), graph, assignment);
  Json spares = Json::array();
  for (const SpareNic& spare : assignment.spares) {
    spares.push_back({{"node", spare.nic}, {"reason", spare.reason}});
  }
  json.add("spare_nics", spares);
  Json slow = Json::array();
  for (const LinkState& link : links_in_use(graph)) {
    if (is_slow(link.verdict)) slow.push_back(json_of(graph, link));
  }
  json.add("slow_links", slow);
  Json found = Json::array();
  for (const Finding& finding : findings(graph)) found.push_back(json_of(finding));
  json.add("findings", found);
  json.add("remarks", graph.remarks());
  json.close();
  text += '\n';
  return text;
}

}  // namespace beeline::topology
