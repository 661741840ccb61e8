// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/report.h"

#include <algorithm>
#include <utility>

#include "plugin/gdr/remedy.h"

namespace beeline::gdr {
namespace {

using topology::Distance;

constexpr const char* kOffByLevel = "off, as NCCL_NET_GDR_LEVEL=LOC asks";

// Groups of devices with the same text, in the order in which the texts were added.
class Groups {
 public:
  void add(const Device& device, const std::string& said) {
    const auto found = std::ranges::find(groups_, said, &Group::said);
    Group& group = found != groups_.end() ? *found : groups_.emplace_back(Group{"", said});
    group.names += (group.names.empty() ? "" : ", ") + device.ibdev;
  }

  struct Group {
    std::string names;
    std::string said;
  };
  const std::vector<Group>& all() const noexcept { return groups_; }
  bool empty() const noexcept { return groups_.empty(); }

  // "mlx5_0, mlx5_1 (PIX, dma-buf), mlx5_2 (PXB, dma-buf)"
  std::string in_brackets() const {
    std::string text;
    for (const Group& group : groups_) {
      text += (text.empty() ? "" : ", ") + group.names + " (" + group.said + ")";
    }
    return text;
  }

 private:
  std::vector<Group> groups_;
};

// The results for the NICs of this host, sorted by their effect on the job.
struct Sorted {
  Groups on;
  Groups no_dmabuf;  // of those that are on
  Groups off;
  std::vector<const Tried*> far;
};

std::string who(const gpu::Gpu& gpu) {
  return "GPUDirect GPU " + std::to_string(gpu.ordinal) + " (" + gpu.pci + "): ";
}

// "writes ordered for the owner" is CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER.
const char* ordering_text(const gpu::Gpu& gpu) noexcept {
  if (gpu.writes_ordering >= cuda_abi::kOrderingAllDevices) return "for all devices";
  return gpu.writes_are_ordered() ? "for the owner" : "for none";
}

std::string on_text(const Tried& tried) {
  const Proof& proof = tried.proof;
  std::string text = tried.distance ? std::string(to_string(*tried.distance)) + ", " : "";
  text += to_string(proof.ways.best());
  if (!proof.transferred) text += ", not tried";
  if (!proof.why_unproven.empty()) text += ": " + proof.why_unproven;
  if (tried.device->caps.relaxed_ordering) text += ", relaxed ordering";
  return text;
}

std::string off_text(const Tried& tried, const GpuReport& report, const std::string& sysfs_root) {
  const std::string advice = remedy(tried.proof, report.cuda, report.gpu, sysfs_root);
  return tried.proof.failure + (advice.empty() ? "" : ". To fix it: " + advice);
}

Sorted sorted(const GpuReport& report, const std::string& sysfs_root) {
  Sorted sorted;
  for (const Tried& tried : report.tried) {
    if (!tried.proof.failure.empty()) {
      sorted.off.add(*tried.device, off_text(tried, report, sysfs_root));
    } else if (tried.distance && *tried.distance > report.level) {
      sorted.far.push_back(&tried);
    } else {
      const Attempt& dmabuf = tried.proof.ways.dmabuf;
      sorted.on.add(*tried.device, on_text(tried));
      if (!dmabuf.works) sorted.no_dmabuf.add(*tried.device, dmabuf.why_not);
    }
  }
  return sorted;
}

// All NICs that work are farther away than NCCL's limit.
std::string too_far_text(const std::vector<const Tried*>& far, Distance level) {
  const Tried& nearest =
      **std::ranges::min_element(far, {}, [](const Tried* tried) { return *tried->distance; });
  Groups names;
  for (const Tried* const tried : far) {
    if (tried->distance == nearest.distance) names.add(*tried->device, "");
  }
  return "off: the nearest NICs that reach it (" + names.all().front().names + ") are " +
         to_string(*nearest.distance) + " apart from it, " + meaning(*nearest.distance) +
         ", and NCCL goes up to " + nccl_word(level) +
         ": it takes the data through host memory. NCCL_NET_GDR_LEVEL=" +
         nccl_word(*nearest.distance) + " turns GPUDirect on, by " +
         to_string(nearest.proof.ways.best()) + "; measure first whether that is faster";
}

std::string far_count_text(std::size_t count) {
  if (count == 0) return {};
  return "; " + std::to_string(count) + " farther NIC" + (count == 1 ? "" : "s") +
         " not used (normal)";
}

}  // namespace

std::vector<Line> lines_of(const GpuReport& report, const std::string& sysfs_root) {
  if (report.level == Distance::kLoc) return {{false, who(report.gpu) + kOffByLevel}};
  const Sorted found = sorted(report, sysfs_root);
  std::vector<Line> lines;
  if (!found.on.empty()) {
    lines.push_back({false, who(report.gpu) + "on with " + found.on.in_brackets() +
                                far_count_text(found.far.size()) + "; writes ordered " +
                                ordering_text(report.gpu)});
  } else if (!found.far.empty()) {
    lines.push_back({false, who(report.gpu) + too_far_text(found.far, report.level)});
  }
  for (const auto& [names, why] : found.no_dmabuf.all()) {
    lines.front().text.append("; dma-buf fails with ").append(names).append(": ").append(why);
  }
  for (const auto& [names, why] : found.off.all()) {
    lines.push_back({true, who(report.gpu).append("off with ").append(names).append(": ") + why});
  }
  return lines;
}

std::string without_gpu_text(std::span<const Answered> answers, Distance level) {
  if (level == Distance::kLoc) return std::string("GPUDirect: ") + kOffByLevel;
  Groups good;
  Groups bad;
  for (const auto& [device, ways] : answers) {
    if (ways.any()) {
      good.add(*device, to_string(ways.best()));
    } else {
      bad.add(*device,
              "dma-buf: " + ways.dmabuf.why_not + "; peer memory: " + ways.peermem.why_not);
    }
  }
  std::string text = "GPUDirect: this process uses no GPU yet, so nothing was tried";
  if (!good.empty()) text += "; the drivers offer it with " + good.in_brackets();
  if (!bad.empty()) text += "; it will be off with " + bad.in_brackets();
  return text;
}

}  // namespace beeline::gdr
