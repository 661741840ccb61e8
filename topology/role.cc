// SPDX-License-Identifier: Apache-2.0
#include "topology/role.h"

namespace beeline::topology {
namespace {

constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint16_t kAmd = 0x1002;

// Servers have such chips (Rage, and Radeon before 2007) for the console. They cannot compute.
bool is_console_of_ati(const Node& node) noexcept {
  return node.vendor == kAmd && node.device >= 0x3000 && node.device < 0x6000;
}

bool is_gpu(const Node& node) noexcept {
  switch (node.pci_class >> 8) {
    case 0x0302:               // 3D controller: NVIDIA's data center GPUs
    case 0x1200: return true;  // processing accelerator: AMD Instinct and others
    case 0x0300:               // VGA: workstation GPUs
    case 0x0380:               // other display controller
      return node.vendor == kNvidia || (node.vendor == kAmd && !is_console_of_ati(node));
    default: return false;
  }
}

bool is_rdma_nic(const Node& node) noexcept {
  const std::string& name = os_name(node, OsKind::kRdma);
  const bool is_link_of_coprocessor =
      name.starts_with("scif");  // Xeon Phi: no network is behind it
  constexpr std::uint32_t kInfiniBandOfOld = 0x0c06;
  const bool has_class = node.pci_class >> 16 == 0x02 || node.pci_class >> 8 == kInfiniBandOfOld ||
                         node.pci_class == 0;
  return has_class && !name.empty() && !is_link_of_coprocessor;
}

}  // namespace

DeviceRole guess_role(const Node& node) noexcept {
  if (node.kind != NodeKind::kDevice) return DeviceRole::kOther;
  if (is_gpu(node)) return DeviceRole::kGpu;
  return is_rdma_nic(node) ? DeviceRole::kRdmaNic : DeviceRole::kOther;
}

}  // namespace beeline::topology
