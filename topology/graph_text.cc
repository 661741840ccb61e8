// SPDX-License-Identifier: Apache-2.0
//
// Replaces control characters in texts that end up on a terminal.
#include <algorithm>

#include "topology/graph_build.h"

namespace beeline::topology {

void clean_text(std::string& text) noexcept {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::ranges::replace_if(text, is_control, '?');
}

void clean_texts(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    for (std::string* text : {&node.name, &node.cpus, &node.bond, &node.uuid, &node.gpu.gcn,
                              &node.gpu.arch, &node.cpu.arch, &node.cpu.vendor}) {
      clean_text(*text);
    }
    for (GpuLink& link : node.gpu.links) clean_text(link.target);
    for (OsDevice& device : node.os_devices) clean_text(device.name);
  }
}

}  // namespace beeline::topology
