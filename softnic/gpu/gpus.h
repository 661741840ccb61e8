// SPDX-License-Identifier: Apache-2.0
// The GPUs of the host, from its PCI tree, in the order of their addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softnic/gpu/cuda_abi.h"
#include "softnic/gpu/settings.h"

namespace softnic::gpu {

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  auto operator<=>(const PciAddress&) const = default;

  std::string text() const;  // "0000:01:00.0"
};

struct Gpu {
  PciAddress pci;
  std::uint32_t pci_ids = 0x233010de;  // device ID, then vendor ID
  int numa = -1;                       // the nearest NUMA node of the host
  std::uint64_t bar1 = 0;              // size of BAR1; 0: not in the tree
  Uuid uuid{};
};

// Parses "0000:01:00.0" and the shorter forms that the driver accepts. Returns false for other
// texts.
bool parse_pci_address(const std::string& text, PciAddress* out);

// `root` is the sysfs tree of BEELINE_SYSFS_ROOT; if it is empty, there is one invented GPU.
// `visible` is CUDA_VISIBLE_DEVICES; nullptr means all.
std::vector<Gpu> find_gpus(const std::string& root, const Settings& settings, const char* visible);

}  // namespace softnic::gpu
