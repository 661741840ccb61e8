// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/machine_judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "topology/assignment.h"
#include "topology/distance.h"
#include "topology/findings.h"
#include "topology/nccl_choice.h"
#include "topology/nccl_paths.h"
#include "topology/nic_group.h"
#include "topology/read/nccl_xml.h"
#include "topology/read/sysfs_text.h"
#include "topology/read/xml.h"
#include "topology/render/assignment_text.h"
#include "topology/render/json.h"
#include "topology/render/matrix.h"
#include "topology/render/report.h"
#include "topology/render/svg.h"
#include "topology/render/verdict.h"
#include "topology/write/nccl_xml.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::topology;

std::vector<NodeIndex> devices_of(const Graph& graph) {
  std::vector<NodeIndex> devices(graph.gpus().begin(), graph.gpus().end());
  devices.insert(devices.end(), graph.nics().begin(), graph.nics().end());
  return devices;
}

void hold_distances(const Graph& graph, const Distances& distances) {
  const std::vector<NodeIndex> devices = devices_of(graph);
  for (const NodeIndex a : devices) {
    for (const NodeIndex b : devices) {
      hold((distances.between(a, b) == Distance::kLoc) == (a == b), "a device is where it is");
      hold(distances.rank(a, b) == distances.rank(b, a), "a way back is as long");
    }
  }
}

std::vector<NodeIndex> leads_of(const Graph& graph) {
  std::vector<NodeIndex> leads;
  for (const NicGroup& group : nic_groups(graph, nics_not_down(graph))) leads.push_back(group.lead);
  return leads;
}

void hold_given(const std::set<NodeIndex>& leads, const GpuAssignment& given,
                const NcclChoice& choice) {
  hold(given.nics.empty() == leads.empty(), "a GPU has a NIC where there is one");
  hold(!given.reason.empty(), "there is a reason");
  std::set<NodeIndex> all(given.nics.begin(), given.nics.end());
  all.insert(given.standby.begin(), given.standby.end());
  hold(all == leads, "every NIC is used or stands by");
  hold(all.size() == given.nics.size() + given.standby.size(), "and only once");
  const auto is_best = [&choice](NodeIndex nic) {
    return std::ranges::find(choice.equals, nic) != choice.equals.end();
  };
  hold(std::ranges::all_of(given.nics, is_best), "a GPU has what NCCL holds for best");
  hold(std::ranges::all_of(choice.nics, is_best), "and so does NCCL");
}

void hold_texts(const Graph& graph, const Assignment& assignment) {
  for (const std::string& text :
       {matrix_text(graph), devices_text(graph), models_text(graph),
        findings_text(graph, Severity::kWarning), findings_text(graph, Severity::kNote),
        assignment_text(graph, assignment), standby_text(graph, assignment),
        nccl_ib_hca(graph, assignment), verdict_text(graph, assignment),
        gpu_nic_matrix_text(graph, assignment)}) {
    hold(std::ranges::none_of(
             text, [](char c) { return (c < 0x20 && c >= 0 && c != '\n') || c == 0x7f; }),
         "a text does not steer a terminal");
  }
  hold(nlohmann::json::accept(to_json(graph, assignment)), "JSON is JSON");
  const auto picture = parse_xml(to_svg(graph, assignment), "x.svg");
  hold(picture && picture->name == "svg", "a picture is XML");
}

void hold_findings(const Graph& graph) {
  for (const topology::Finding& finding : findings(graph)) {
    hold(finding.device == kNoNode || finding.device < graph.size(), "a finding is of a node");
    hold(!finding.cause.empty() && !finding.fix.empty(), "and says why and what to do");
  }
}

std::vector<std::string> rdma_names(const Node& node) {
  std::vector<std::string> names;
  for (const OsDevice& device : node.os_devices) {
    if (device.kind == OsKind::kRdma) names.push_back(device.name);
  }
  return names;
}

// Compares two machines in the facts that NCCL uses.
void hold_same_device(const Node& a, const Node& b) {
  hold(a.pci == b.pci && a.role == b.role, "the same device");
  hold(a.numa == b.numa, "on the same NUMA node");
  hold(rdma_names(a) == rdma_names(b), "of the same names");
  // A NIC without a name is written without its port.
  hold(rdma_names(a).empty() || a.nic_ports == b.nic_ports, "with the same ports");
  hold(a.numa < 0 || mask_of_list(a.cpus) == mask_of_list(b.cpus), "near to the same processors");
}

void hold_same_to_nccl(const Graph& a, const Graph& b) {
  const std::vector<NodeIndex> x = devices_of(a);
  const std::vector<NodeIndex> y = devices_of(b);
  hold(a.gpus().size() == b.gpus().size() && x.size() == y.size(), "as many devices");
  const Distances distances_a(a);
  const Distances distances_b(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    hold_same_device(a[x[i]], b[y[i]]);
    for (std::size_t j = 0; j < x.size(); ++j) {
      // All without a NUMA node are at one <cpu>, whichever host bridge they had.
      if (a[x[i]].numa < 0 && a[x[j]].numa < 0) continue;
      const std::string word = nccl_name(distances_a.between(x[i], x[j]));
      hold(word == nccl_name(distances_b.between(y[i], y[j])), "as near as before");
    }
  }
}

}  // namespace

void hold_sound(const Graph& graph) {
  const Distances distances(graph);
  hold_distances(graph, distances);
  const Assignment assignment = assign(graph);
  hold(assignment.gpus.size() == graph.gpus().size(), "every GPU is assigned");
  const std::vector<NodeIndex> leads = leads_of(graph);
  const std::vector<NcclChoice> choices = nccl_choices(graph, {.nics = leads});
  for (std::size_t i = 0; i < choices.size(); ++i) {
    hold_given({leads.begin(), leads.end()}, assignment.gpus[i], choices[i]);
  }
  hold_findings(graph);
  hold_texts(graph, assignment);
}

void hold_written(const Graph& graph) {
  const std::string text = write_nccl_xml(graph);
  auto parts = read_nccl_xml(text, "written.xml");
  hold(parts.has_value(), "what is written can be read");
  const auto again = Graph::make(*std::move(parts));
  hold(again.has_value(), "what is written is a machine");
  hold_same_to_nccl(graph, *again);
  hold(write_nccl_xml(*again) == text, "what was read is written the same again");
}

}  // namespace beeline::fuzz
