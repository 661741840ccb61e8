// SPDX-License-Identifier: Apache-2.0
//
// Machines for tests, as text. Each line is a node, and indented lines are below it:
//
//   numa 0
//     host 0000:17
//       root 17:01.0
//         up 18:00.0
//           down 19:00.0
//             gpu 1a:00.0 numa=0 now=16x8 max=32x16
//           down 19:01.0
//             nic 1b:00.0 mlx5_0 speed=400000
//             vf 1b:00.1 mlx5_1 pf=1b:00.0
//
// Words: package N, numa N, host DOMAIN:BUS, root/up/down/bridge/switch ADDRESS, gpu ADDRESS,
// nic/vf ADDRESS RDMA-NAME, other ADDRESS [NAME], soft RDMA-NAME (no PCI). An address may lack its
// domain. A link is GT/s x lanes. Lines that begin with # are ignored.
//
// Of a NIC: speed=MBPS adds a port, state=down applies to the last port. Of a GPU: dev=N,
// sm=N, nvlink=COUNT*ADDRESS or COUNT*switch, c2c=MBYTES. Of a NUMA node: cpu=VENDOR/FAMILY/MODEL.
// Of anything on PCI: ids=VENDOR:DEVICE:SUBVENDOR:SUBDEVICE.
#pragma once

#include <string>
#include <string_view>

#include "topology/graph.h"

namespace beeline::topology {

// An invalid text is a bug of the test: it ends the program with a message.
GraphParts read_machine(std::string_view text);
Graph make_machine(std::string_view text);

// The same machine, with its nodes in another order.
GraphParts shuffled(const GraphParts& parts, unsigned seed);

}  // namespace beeline::topology
