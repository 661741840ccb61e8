// SPDX-License-Identifier: Apache-2.0
//
// The numbers are from NCCL 2.30 (src/graph/topo.h and topo.cc).
#include "topology/nccl_link.h"

#include "topology/link_state.h"

namespace beeline::topology {
namespace {

constexpr float kUnknownCpu = 10.0F;
constexpr std::uint16_t kBroadcom = 0x1000;

std::uint32_t first_known(std::uint32_t first, std::uint32_t second) noexcept {
  return first != 0 ? first : second;
}

// NCCL's rate of one lane, in units of 100 Mb/s.
int nccl_lane_rate(std::uint32_t mega_transfers) noexcept {
  switch (mega_transfers) {
    case 2'500: return 15;
    case 5'000: return 30;
    case 16'000: return 120;
    case 32'000: return 240;
    case 64'000: return 480;
    default: return 60;
  }
}

float intel_bandwidth(int family, int model) noexcept {
  constexpr int kEmeraldRapids = 0xcf;
  constexpr int kSapphireRapids = 0x8f;
  constexpr int kSkylake = 0x55;
  if (family < 0 || model < 0) return kUnknownCpu;
  if (family != 6 || model < kSkylake) return 6.0F;
  return model >= kEmeraldRapids ? 40.0F : model >= kSapphireRapids ? 22.0F : 10.0F;
}

float nvlink_bandwidth(int sm) noexcept {
  if (sm >= 100) return 40.1F;
  if (sm >= 90) return 20.6F;
  if (sm == 86) return 12.0F;
  return sm >= 60 && sm < 70 ? 18.0F : 20.0F;
}

// The generation of a Broadcom switch of that level, or 0. For the fourth generation any device of
// the family counts; in the fifth, the subsystem device says which level it is.
int broadcom_generation(const Node& node, bool lower) noexcept {
  if (node.vendor != kBroadcom) return 0;
  const std::uint32_t last = node.subsystem_device & 0xf000U;
  if (node.device == 0xc010 && node.subsystem_vendor == 0x1000 && last == 0xa000) return 4;
  const bool is_fifth = node.device == 0xc030 && node.subsystem_vendor == 0x1000;
  return is_fifth && last == (lower ? 0x1000U : 0U) ? 5 : 0;
}

}  // namespace

PcieLink link_for_nccl(const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  LinkState link;
  if (has_link_above(node)) {
    link = link_above(graph, index);
  } else {  // a port that the source describes as a switch has no link above it
    link.now = node.link_now;
    link.possible = node.link_max;
  }
  return {.mega_transfers = first_known(link.possible.mega_transfers, link.now.mega_transfers),
          .lanes = first_known(link.possible.lanes, link.now.lanes)};
}

float nccl_bandwidth(const PcieLink& link) noexcept {
  const auto lanes = static_cast<int>(first_known(link.lanes, 16));
  return static_cast<float>(lanes * nccl_lane_rate(link.mega_transfers) / 80.0);
}

float nccl_bandwidth(const CpuFacts& cpu) noexcept {
  if (cpu.arch == "ppc64") return 32.0F;
  if (cpu.arch == "arm64") return 6.0F;
  if (cpu.vendor == "AuthenticAMD") return 16.0F;
  if (cpu.vendor == "GenuineIntel") return intel_bandwidth(cpu.family, cpu.model);
  if (cpu.vendor == "CentaurHauls" || cpu.vendor == "  Shanghai  ") {
    return cpu.family == 7 && cpu.model == 0x5b ? 9.0F : 6.0F;
  }
  return kUnknownCpu;
}

float nccl_bandwidth(const GpuLink& link, int sm) noexcept {
  const auto count = static_cast<float>(link.count);
  switch (link.kind) {
    case GpuLinkKind::kNvLink: return count * nvlink_bandwidth(sm);
    case GpuLinkKind::kXgmi: return count * 48.0F;  // the value for MI300; no choice depends on it
    case GpuLinkKind::kC2c: return count * static_cast<float>(link.mbytes_per_second) / 1'000.0F;
  }
  return 0;
}

bool is_same_switch_to_nccl(const Node& upper, const Node& lower) noexcept {
  const int generation = broadcom_generation(upper, false);
  return generation != 0 && generation == broadcom_generation(lower, true);
}

}  // namespace beeline::topology
