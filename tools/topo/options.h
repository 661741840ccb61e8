// SPDX-License-Identifier: Apache-2.0
//
// The options of `beeline topo`, after the command line was checked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace beeline::topo {

struct Options {
  std::string from = {};               // a file, or a folder like /sys; empty: the live machine
  const char* from_option = "--from";  // its name, for messages
  std::vector<std::string> gpus = {};  // PCI devices to treat as GPUs
  std::size_t max_nics_per_gpu = 0;    // 0: no limit

  std::vector<std::string> diff = {};  // two files or folders; empty: one machine is shown
  bool check = false;                  // show only problems, and return a status

  bool all = false;           // the details, too
  bool brief = false;         // the GPU-NIC matrix instead of the text
  bool json = false;          // to stdout instead of the text
  std::string svg = {};       // files; empty: none; "-": stdout instead of the text
  std::string nccl_xml = {};  //
  int nccl_xml_version = 0;   // 0: as topology::nccl_xml_version() says
};

}  // namespace beeline::topo
