// SPDX-License-Identifier: Apache-2.0
//
// What is near to what in a machine: a tree of nodes that refer to each other by index, and what
// could not be seen. A reader makes nodes in any order; make() checks them and puts them into an
// order that depends on the machine alone, so that nothing above depends on how it was enumerated.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "topology/node.h"

namespace beeline::topology {

// What a reader hands over.
struct GraphParts {
  std::vector<Node> nodes = {};
  std::string source = {};                // "this machine", "dgx.xml (NCCL)"
  std::vector<std::string> remarks = {};  // what could not be seen, and what that makes uncertain
  int nccl_version = 0;  // of NCCL's XML: 1, or 2 for RCCL; 0: it was something else
};

// Lifecycle: a value, never changed. Threads: any.
class Graph {
 public:
  // The error is a text for people that names the node: no machine or two, a parent that is not
  // there or not above (a cycle is one), an address, NUMA node or RDMA device twice, a virtual
  // function of nothing, numbers no machine has.
  //
  // Changes what was handed over:
  // - order: parents before children, children by kind, number, address, name; so are the lists in
  // nodes;
  // - `numa`: everything below a NUMA node or a host bridge gets its NUMA node. A host bridge that
  // does
  //   not know takes the word of its first device that does. Contradictions become a remark;
  // - a host bridge that stands beside its NUMA node (below the same package or the machine) moves
  //   below it; a NUMA node that is only spoken of is made, below the machine;
  // - `cpus` of I/O that does not say: from the next thing above that does, the machine excepted;
  // - `port` of bridges, where unknown;
  // - control characters in texts: '?'.
  static Outcome<Graph> make(GraphParts parts);

  std::span<const Node> nodes() const noexcept { return nodes_; }
  const Node& operator[](NodeIndex index) const noexcept { return nodes_[index]; }
  std::size_t size() const noexcept { return nodes_.size(); }

  // By PCI address, then name: the same at every start and on every machine of a kind.
  std::span<const NodeIndex> gpus() const noexcept { return gpus_; }
  // Every device that can carry RDMA, virtual functions and members of bonds included.
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

// By OS name of that kind, or by address; kNoNode when there is none.
NodeIndex find_os_device(const Graph& graph, OsKind kind, std::string_view name) noexcept;
NodeIndex find_pci(const Graph& graph, const PciAddress& address) noexcept;

}  // namespace beeline::topology
