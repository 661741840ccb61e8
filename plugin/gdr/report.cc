// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/report.h"

#include <cstdio>

#include "plugin/gdr/remedy.h"

namespace beeline::gdr {
namespace {

std::string rate_text(double bytes_per_s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB/s", bytes_per_s / 1e9);
  return text;
}

// "writes ordered for the owner" is CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER.
const char* ordering_text(const gpu::Gpu& gpu) noexcept {
  if (gpu.writes_ordering >= cuda_abi::kOrderingAllDevices) return "for all devices";
  return gpu.writes_are_ordered() ? "for the owner" : "for none";
}

std::string on_text(const Pair& pair) {
  const Proof& proof = pair.proof;
  std::string text = std::string("on by ") + to_string(proof.ways.best());
  if (pair.distance) text += std::string(", ") + topology::to_string(*pair.distance);
  text += ", " + (proof.transferred ? rate_text(proof.bytes_per_s) : std::string("not measured"));
  if (!proof.why_unproven.empty()) text += " (" + proof.why_unproven + ")";
  if (pair.device.caps.relaxed_ordering) text += ", relaxed ordering";
  text += std::string(", writes ordered ") + ordering_text(pair.gpu);
  return text;
}

std::string far_text(const Pair& pair) {
  const char* const word = topology::nccl_word(*pair.distance);
  return std::string("off: they are ") + topology::to_string(*pair.distance) +
         " apart, and NCCL goes up to " + topology::nccl_word(pair.level) + ". To turn it on, by " +
         to_string(pair.proof.ways.best()) + ": NCCL_NET_GDR_LEVEL=" + word;
}

std::string off_text(const Pair& pair, const std::string& sysfs_root) {
  const std::string advice = remedy(pair.proof, pair.cuda, pair.gpu, sysfs_root);
  return "off: " + pair.proof.failure + (advice.empty() ? "" : ". To fix it: " + advice);
}

}  // namespace

std::string pair_text(const Pair& pair, const std::string& sysfs_root) {
  const std::string who = "GPUDirect " + pair.device.ibdev + " - GPU " +
                          std::to_string(pair.gpu.ordinal) + " (" + pair.gpu.pci + "): ";
  if (!pair.proof.failure.empty()) return who + off_text(pair, sysfs_root);
  return who + (pair.is_far() ? far_text(pair) : on_text(pair));
}

std::string without_gpu_text(const Device& device, const Ways& ways) {
  const std::string who = "GPUDirect " + device.ibdev + ": ";
  if (!ways.any()) {
    return who + "off: dma-buf: " + ways.dmabuf.why_not + "; peer memory: " + ways.peermem.why_not;
  }
  return who + "on by " + to_string(ways.best()) +
         " as far as can be told: this process uses no GPU yet";
}

}  // namespace beeline::gdr
