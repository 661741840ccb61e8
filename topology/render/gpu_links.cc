// SPDX-License-Identifier: Apache-2.0
#include "topology/render/gpu_links.h"

#include <algorithm>

#include "topology/render/name_list.h"

namespace beeline::topology {
namespace {

constexpr std::uint32_t kNvidiaGpuClass = 0x03;  // of NVIDIA GPUs
constexpr std::uint32_t kAmdGpuClass = 0x12;     // of AMD GPUs

bool is_link_to_gpu(const GpuLink& link) noexcept {
  const std::uint32_t base_class = link.target_class >> 16;
  return base_class == kNvidiaGpuClass || base_class == kAmdGpuClass;
}

// All links of one kind, and the number of GPUs at their other ends.
struct Bundle {
  std::uint32_t links = 0;
  std::size_t gpus = 0;
};
Bundle bundle_of(const Node& gpu, GpuLinkKind kind) {
  Bundle bundle;
  for (const GpuLink& link : gpu.gpu.links) {
    if (link.kind != kind) continue;
    bundle.links += link.count;
    if (is_link_to_gpu(link)) ++bundle.gpus;
  }
  return bundle;
}

std::string bundle_text(const Node& gpu, GpuLinkKind kind, const char* name) {
  const Bundle bundle = bundle_of(gpu, kind);
  if (bundle.links == 0) return "";
  return count_of(bundle.links, name) + " to " +
         (bundle.gpus == 0 ? "switches" : count_of(bundle.gpus, "GPU"));
}

std::uint32_t links_to(const Node& gpu, GpuLinkKind kind, const Node& other) {
  if (!other.pci) return 0;
  const std::string address = to_string(*other.pci);
  std::uint32_t count = 0;
  for (const GpuLink& link : gpu.gpu.links) {
    if (link.kind == kind && link.target == address) count += link.count;
  }
  return count;
}

std::uint32_t links_to_switches(const Node& gpu) {
  std::uint32_t count = 0;
  for (const GpuLink& link : gpu.gpu.links) {
    if (link.kind == GpuLinkKind::kNvLink && !is_link_to_gpu(link)) count += link.count;
  }
  return count;
}

}  // namespace

std::string gpu_links_text(const Node& gpu) {
  std::string text;
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : ", ") + more;
  };
  add(bundle_text(gpu, GpuLinkKind::kNvLink, "NVLink"));
  add(bundle_text(gpu, GpuLinkKind::kXgmi, "xGMI link"));
  const auto is_c2c = [](const GpuLink& link) { return link.kind == GpuLinkKind::kC2c; };
  if (std::ranges::any_of(gpu.gpu.links, is_c2c)) add("C2C to the processor");
  return text;
}

std::string gpu_link_name(const Node& a, const Node& b) {
  const std::uint32_t direct =
      std::max(links_to(a, GpuLinkKind::kNvLink, b), links_to(b, GpuLinkKind::kNvLink, a));
  const std::uint32_t switched = std::min(links_to_switches(a), links_to_switches(b));
  if (const std::uint32_t nvlinks = std::max(direct, switched); nvlinks > 0) {
    return "NV" + std::to_string(nvlinks);
  }
  const bool is_xgmi =
      links_to(a, GpuLinkKind::kXgmi, b) > 0 || links_to(b, GpuLinkKind::kXgmi, a) > 0;
  return is_xgmi ? "XGMI" : "";
}

}  // namespace beeline::topology
