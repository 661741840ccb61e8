// SPDX-License-Identifier: Apache-2.0
//
// Roles by PCI class.
#include "topology/role.h"

namespace beeline::topology {
namespace {

constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint16_t kAmd = 0x1002;

bool is_gpu(const Node& node) noexcept {
  switch (node.pci_class >> 8) {
    case 0x0302:               // 3D controller: NVIDIA's data-centre GPUs
    case 0x1200: return true;  // processing accelerator: AMD Instinct and others
    case 0x0300:               // VGA: workstation GPUs
    case 0x0380: return node.vendor == kNvidia || node.vendor == kAmd;  // other display controller
    default: return false;
  }
}

bool is_rdma_nic(const Node& node) noexcept {
  const std::uint32_t base_class = node.pci_class >> 16;
  return (base_class == 0x02 || node.pci_class == 0) && !os_name(node, OsKind::kRdma).empty();
}

}  // namespace

DeviceRole guess_role(const Node& node) noexcept {
  if (node.kind != NodeKind::kDevice) return DeviceRole::kOther;
  if (is_gpu(node)) return DeviceRole::kGpu;
  return is_rdma_nic(node) ? DeviceRole::kRdmaNic : DeviceRole::kOther;
}

}  // namespace beeline::topology
