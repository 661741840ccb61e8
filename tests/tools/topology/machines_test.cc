// SPDX-License-Identifier: Apache-2.0
//
// Compares the distances and the assignment of each kind of machine with expected ones.
#include "tests/tools/topology/machines.h"

#include "tests/support/catch.h"
#include "tests/tools/topology/answers.h"
#include "tests/tools/topology/machine_text.h"
#include "topology/path.h"

using namespace beeline::topology;

namespace {

struct Kind {
  const char* name;
  std::string text;
  Lines distances;
  Lines nics;
  Lines spares = {};
};

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = {
      {.name = "8 GPUs and 8 NICs, one of each below a switch",
       .text = machines::one_nic_each(),
       .distances = {"XNNNSSSS PNNNSSSS", "NXNNSSSS NPNNSSSS", "NNXNSSSS NNPNSSSS",
                     "NNNXSSSS NNNPSSSS", "SSSSXNNN SSSSPNNN", "SSSSNXNN SSSSNPNN",
                     "SSSSNNXN SSSSNNPN", "SSSSNNNX SSSSNNNP"},
       .nics = {"PIX mlx5_0", "PIX mlx5_1", "PIX mlx5_2", "PIX mlx5_3", "PIX mlx5_4", "PIX mlx5_5",
                "PIX mlx5_6", "PIX mlx5_7"}},
      {.name = "the same, numbered in reverse",
       .text = machines::one_nic_each_reversed(),
       .distances = {"XNNNSSSS PNNNSSSS", "NXNNSSSS NPNNSSSS", "NNXNSSSS NNPNSSSS",
                     "NNNXSSSS NNNPSSSS", "SSSSXNNN SSSSPNNN", "SSSSNXNN SSSSNPNN",
                     "SSSSNNXN SSSSNNPN", "SSSSNNNX SSSSNNNP"},
       .nics = {"PIX mlx5_7", "PIX mlx5_6", "PIX mlx5_5", "PIX mlx5_4", "PIX mlx5_3", "PIX mlx5_2",
                "PIX mlx5_1", "PIX mlx5_0"}},
      {.name = "8 and 8, tied in pairs over 4 NUMA nodes",
       .text = machines::tied_in_pairs(),
       .distances = {"XPSSSSSS PPSSSSSS", "PXSSSSSS PPSSSSSS", "SSXPSSSS SSPPSSSS",
                     "SSPXSSSS SSPPSSSS", "SSSSXPSS SSSSPPSS", "SSSSPXSS SSSSPPSS",
                     "SSSSSSXP SSSSSSPP", "SSSSSSPX SSSSSSPP"},
       .nics = {"PIX mlx5_0", "PIX mlx5_1", "PIX mlx5_2", "PIX mlx5_3", "PIX mlx5_4", "PIX mlx5_5",
                "PIX mlx5_6", "PIX mlx5_7"}},
      {.name = "8 and 4",
       .text = machines::two_gpus_a_nic(),
       .distances = {"XPNNSSSS BNSS", "PXNNSSSS BNSS", "NNXPSSSS NBSS", "NNPXSSSS NBSS",
                     "SSSSXPNN SSBN", "SSSSPXNN SSBN", "SSSSNNXP SSNB", "SSSSNNPX SSNB"},
       .nics = {"PXB mlx5_0", "PXB mlx5_0", "PXB mlx5_1", "PXB mlx5_1", "PXB mlx5_2", "PXB mlx5_2",
                "PXB mlx5_3", "PXB mlx5_3"}},
      {.name = "8 and 1",
       .text = machines::one_nic_for_all(),
       .distances = {"XNNNSSSS N", "NXNNSSSS N", "NNXNSSSS N", "NNNXSSSS N", "SSSSXNNN S",
                     "SSSSNXNN S", "SSSSNNXN S", "SSSSNNNX S"},
       .nics = {"NODE mlx5_0", "NODE mlx5_0", "NODE mlx5_0", "NODE mlx5_0", "SYS mlx5_0",
                "SYS mlx5_0", "SYS mlx5_0", "SYS mlx5_0"}},
      {.name = "8 and 32, in groups of 4",
       .text = machines::four_nics_each(),
       .distances = {"XNNNSSSS PPPPNNNNNNNNNNNNSSSSSSSSSSSSSSSS",
                     "NXNNSSSS NNNNPPPPNNNNNNNNSSSSSSSSSSSSSSSS",
                     "NNXNSSSS NNNNNNNNPPPPNNNNSSSSSSSSSSSSSSSS",
                     "NNNXSSSS NNNNNNNNNNNNPPPPSSSSSSSSSSSSSSSS",
                     "SSSSXNNN SSSSSSSSSSSSSSSSPPPPNNNNNNNNNNNN",
                     "SSSSNXNN SSSSSSSSSSSSSSSSNNNNPPPPNNNNNNNN",
                     "SSSSNNXN SSSSSSSSSSSSSSSSNNNNNNNNPPPPNNNN",
                     "SSSSNNNX SSSSSSSSSSSSSSSSNNNNNNNNNNNNPPPP"},
       .nics = {"PIX rdmap0 rdmap1 rdmap2 rdmap3", "PIX rdmap4 rdmap5 rdmap6 rdmap7",
                "PIX rdmap8 rdmap9 rdmap10 rdmap11", "PIX rdmap12 rdmap13 rdmap14 rdmap15",
                "PIX rdmap16 rdmap17 rdmap18 rdmap19", "PIX rdmap20 rdmap21 rdmap22 rdmap23",
                "PIX rdmap24 rdmap25 rdmap26 rdmap27", "PIX rdmap28 rdmap29 rdmap30 rdmap31"}},
      {.name = "16 and 8",
       .text = machines::sixteen_gpus(),
       .distances = {"XPNNNNNNSSSSSSSS PNNNSSSS", "PXNNNNNNSSSSSSSS PNNNSSSS",
                     "NNXPNNNNSSSSSSSS NPNNSSSS", "NNPXNNNNSSSSSSSS NPNNSSSS",
                     "NNNNXPNNSSSSSSSS NNPNSSSS", "NNNNPXNNSSSSSSSS NNPNSSSS",
                     "NNNNNNXPSSSSSSSS NNNPSSSS", "NNNNNNPXSSSSSSSS NNNPSSSS",
                     "SSSSSSSSXPNNNNNN SSSSPNNN", "SSSSSSSSPXNNNNNN SSSSPNNN",
                     "SSSSSSSSNNXPNNNN SSSSNPNN", "SSSSSSSSNNPXNNNN SSSSNPNN",
                     "SSSSSSSSNNNNXPNN SSSSNNPN", "SSSSSSSSNNNNPXNN SSSSNNPN",
                     "SSSSSSSSNNNNNNXP SSSSNNNP", "SSSSSSSSNNNNNNPX SSSSNNNP"},
       .nics = {"PIX mlx5_0", "PIX mlx5_0", "PIX mlx5_1", "PIX mlx5_1", "PIX mlx5_2", "PIX mlx5_2",
                "PIX mlx5_3", "PIX mlx5_3", "PIX mlx5_4", "PIX mlx5_4", "PIX mlx5_5", "PIX mlx5_5",
                "PIX mlx5_6", "PIX mlx5_6", "PIX mlx5_7", "PIX mlx5_7"}},
      {.name = "everything below one root port",
       .text = machines::one_root_port(),
       .distances = {"XPBB BB", "PXBB BB", "BBXP BB", "BBPX BB"},
       .nics = {"PXB mlx5_0", "PXB mlx5_1", "PXB mlx5_0", "PXB mlx5_1"}},
      {.name = "all NICs on the far socket",
       .text = machines::far_socket(),
       .distances = {"XNNN SS", "NXNN SS", "NNXN SS", "NNNX SS"},
       .nics = {"SYS mlx5_0", "SYS mlx5_1", "SYS mlx5_0", "SYS mlx5_1"}},
      {.name = "adapters of two ports",
       .text = machines::dual_port(),
       .distances = {"XN NNNN", "NX NNNN"},
       .nics = {"NODE mlx5_0 mlx5_1", "NODE mlx5_2 mlx5_3"}},
      {.name = "virtual functions",
       .text = machines::virtual_functions(),
       .distances = {"XH HHHH", "HX HHHH"},
       .nics = {"PHB mlx5_0", "PHB mlx5_3"},
       .spares = {"mlx5_1: same ports or bond as mlx5_0", "mlx5_2: same ports or bond as mlx5_0"}},
      {.name = "a bond",
       .text = machines::bonded(),
       .distances = {"XH HHH", "HX HHH"},
       .nics = {"PHB mlx5_bond_0", "PHB mlx5_2"},
       .spares = {"mlx5_1: same ports or bond as mlx5_bond_0"}},
      {.name = "a virtual machine, flat",
       .text = machines::flat_virtual_machine(),
       .distances = {"XHHH HHHH", "HXHH HHHH", "HHXH HHHH", "HHHX HHHH"},
       .nics = {"PHB mlx5_0", "PHB mlx5_2", "PHB mlx5_1", "PHB mlx5_3"}},
      {.name = "NUMA nodes that are not reported",
       .text = machines::missing_numa(),
       .distances = {"XS PS", "SX SS"},
       .nics = {"PIX mlx5_0", "SYS mlx5_1"}},
      {.name = "links without lanes",
       .text = machines::no_link_width(),
       .distances = {"XN PN", "NX NH"},
       .nics = {"PIX mlx5_0", "PHB mlx5_1"}},
      {.name = "no I/O at all", .text = machines::no_io(), .distances = {}, .nics = {}},
  };
  return kinds;
}

}  // namespace

TEST_CASE("machines: each kind has its distances and its assignment") {
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    const Graph graph = make_machine(kind.text);
    CHECK(distances_of(graph) == kind.distances);
    CHECK(nics_of(graph) == kind.nics);
    CHECK(spares_of(graph) == kind.spares);
  }
}

TEST_CASE("machines: the order of the nodes does not matter") {
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    const GraphParts parts = read_machine(kind.text);
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const auto graph = Graph::make(shuffled(parts, seed));
      REQUIRE(graph);
      CHECK(distances_of(*graph) == kind.distances);
      CHECK(nics_of(*graph) == kind.nics);
      CHECK(spares_of(*graph) == kind.spares);
    }
  }
}

TEST_CASE("machines: a link without lanes is unknown, not slow") {
  const Graph graph = make_machine(machines::no_link_width());
  const Path path = path_between(graph, graph.gpus()[0], graph.nics()[0]);
  CHECK(path.links.size() == 2);
  CHECK(path.has_unknown_link);
  CHECK_FALSE(path.bottleneck);
  for (const LinkState& link : path.links) CHECK(link.verdict == LinkVerdict::kUnknown);
}
