// SPDX-License-Identifier: Apache-2.0
// The GPUs of the host: those of its PCI tree, in the order of their addresses.
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
  std::uint32_t pci_ids = 0x233010de;  // device, then vendor
  int numa = -1;                       // of the host's node that is nearest
  std::uint64_t bar1 = 0;              // 0: the tree does not say
  Uuid uuid{};
};

// False: not an address. Takes "0000:01:00.0", and the shorter forms that the driver takes.
bool parse_pci_address(const std::string& text, PciAddress* out);

// `root`: the tree as BEELINE_SYSFS_ROOT has it; empty: none, and one GPU is invented. `visible` as
// in CUDA_VISIBLE_DEVICES: nullptr for all.
std::vector<Gpu> find_gpus(const std::string& root, const Settings& settings, const char* visible);

}  // namespace softnic::gpu
