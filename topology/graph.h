// SPDX-License-Identifier: Apache-2.0
//
// The graph of a machine: a tree of nodes that refer to each other by index, and remarks on what a
// reader could not see. A reader adds nodes in any order; make() checks them and sorts them by
// their properties, so that nothing depends on the order in which they were found.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "topology/node.h"

namespace beeline::topology {

// The result of a reader.
struct GraphParts {
  std::vector<Node> nodes = {};
  std::string source = {};  // "this machine", "dgx.xml (NCCL)"
  std::vector<std::string> remarks =
      {};                // what could not be seen, and what is uncertain because of that
  int nccl_version = 0;  // the version of NCCL's XML: 1, or 2 for RCCL; 0: another source
};

// Lifecycle: a value, never changed. Threads: any.
class Graph {
 public:
  // Fails if the nodes cannot form a machine: no machine or two, a missing parent or a cycle of
  // parents, a PCI address, NUMA node or RDMA device that appears twice, a virtual function without
  // a physical one, impossible numbers. The error names the node.
  //
  // make() changes the nodes as follows:
  // - order: parents before children; children by kind, number, address and name; the lists within
  //   nodes are sorted, too;
  // - `numa`: all nodes below a NUMA node or a host bridge get its NUMA node. A host bridge without
  //   one takes that of its first device that has one. Contradictions become a remark;
  // - a host bridge that is a sibling of its NUMA node (below the same package or the machine)
  // moves
  //   below it; a NUMA node that is only referred to is created below the machine;
  // - `cpus` of an I/O node without them: those of the nearest node above, the machine excepted;
  // - `port` of bridges, if unknown;
  // - control characters in texts become '?'.
  static Outcome<Graph> make(GraphParts parts);

  std::span<const Node> nodes() const noexcept { return nodes_; }
  const Node& operator[](NodeIndex index) const noexcept { return nodes_[index]; }
  std::size_t size() const noexcept { return nodes_.size(); }

  // By PCI address, then by name: the same order at every start and on all machines of a kind.
  std::span<const NodeIndex> gpus() const noexcept { return gpus_; }
  // All devices that can carry RDMA, virtual functions and members of bonds included.
  std::span<const NodeIndex> nics() const noexcept { return nics_; }

  const std::string& source() const noexcept { return source_; }
  const std::vector<std::string>& remarks() const noexcept { return remarks_; }
  int nccl_version() const noexcept { return nccl_version_; }

 private:
  Graph() = default;

  std::vector<Node> nodes_;
  std::vector<NodeIndex> gpus_;
  std::vector<NodeIndex> nics_;
  std::string source_;
  std::vector<std::string> remarks_;
  int nccl_version_ = 0;
};

// The node with that OS device, or with that address; kNoNode if there is none.
NodeIndex find_os_device(const Graph& graph, OsKind kind, std::string_view name) noexcept;
NodeIndex find_pci(const Graph& graph, const PciAddress& address) noexcept;

}  // namespace beeline::topology
