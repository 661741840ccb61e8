// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/report.h"

#include <algorithm>

#include "plugin/gdr/fix.h"

namespace beeline::gdr {
namespace {

using topology::Distance;

constexpr const char* kOffByUser = "off, as NCCL_NET_GDR_LEVEL=LOC asks";
constexpr std::string_view kTurnedOff = "gpudirect-turned-off";

// Groups of devices with the same text, in the order in which the texts were added.
class Groups {
 public:
  struct Group {
    std::string said;
    std::string fix;
    std::vector<std::string> nics = {};

    std::string names() const {
      std::string text;
      for (const std::string& nic : nics) text += (text.empty() ? "" : ", ") + nic;
      return text;
    }
  };

  void add(const Device& device, const std::string& said, const std::string& fix = {}) {
    const auto found = std::ranges::find_if(
        groups_, [&](const Group& group) { return group.said == said && group.fix == fix; });
    Group& group = found != groups_.end() ? *found : groups_.emplace_back(Group{said, fix});
    group.nics.push_back(device.ibdev);
  }

  const std::vector<Group>& all() const noexcept { return groups_; }
  bool empty() const noexcept { return groups_.empty(); }

  std::vector<std::string> nics() const {
    std::vector<std::string> names;
    for (const Group& group : groups_) {
      names.insert(names.end(), group.nics.begin(), group.nics.end());
    }
    return names;
  }

  // "mlx5_0, mlx5_1 (PIX, dma-buf), mlx5_2 (PXB, dma-buf)"
  std::string in_brackets() const {
    std::string text;
    for (const Group& group : groups_) {
      text += (text.empty() ? "" : ", ") + group.names() + " (" + group.said + ")";
    }
    return text;
  }

 private:
  std::vector<Group> groups_;
};

// The results for the NICs of this host, grouped by their effect on the job.
struct Sorted {
  Groups on;
  Groups no_dmabuf;  // of those that are on
  Groups off;
  std::vector<const Tried*> far;
};

// `fact` continues "GPUDirect GPU 0 (0000:1b:00.0): ".
Finding about(const gpu::Gpu& gpu, std::string_view id, Severity severity,
              const std::string& fact) {
  const std::string name = label(gpu);
  return {
      .id = id, .severity = severity, .subject = name, .fact = "GPUDirect " + name + ": " + fact};
}

// "writes ordered for the owner" is CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER.
const char* ordering_text(const gpu::Gpu& gpu) noexcept {
  if (gpu.writes_ordering >= cuda_abi::kOrderingAllDevices) return "for all devices";
  return gpu.has_ordered_writes() ? "for the owner" : "for none";
}

std::string on_text(const Tried& tried) {
  const Proof& proof = tried.proof;
  std::string text = tried.distance ? std::string(to_string(*tried.distance)) + ", " : "";
  text += to_string(proof.ways.best());
  if (!proof.transferred) text += ", not tested";
  if (!proof.why_unproven.empty()) text += ": " + proof.why_unproven;
  if (tried.device->caps.relaxed_ordering) text += ", relaxed ordering";
  return text;
}

Sorted sort(const GpuReport& report, const std::string& sysfs_root) {
  Sorted sorted;
  for (const Tried& tried : report.tried) {
    if (!tried.proof.failure.empty()) {
      sorted.off.add(*tried.device, tried.proof.failure,
                     fix_for(tried.proof, report.cuda, report.gpu, sysfs_root));
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
Finding too_far(const std::vector<const Tried*>& far, const GpuReport& report) {
  const Tried& nearest =
      **std::ranges::min_element(far, {}, [](const Tried* tried) { return *tried->distance; });
  Groups nics;
  for (const Tried* const tried : far) {
    if (tried->distance == nearest.distance) nics.add(*tried->device, "");
  }
  const Groups::Group& nearest_nics = nics.all().front();
  Finding finding =
      about(report.gpu, "gpudirect-too-far", Severity::kNote,
            "off: the nearest NICs that reach it (" + nearest_nics.names() + ") are " +
                to_string(*nearest.distance) + " apart from it, " + meaning(*nearest.distance) +
                ", and NCCL goes up to " + nccl_name(report.level) +
                ": it takes the data through host memory. NCCL_NET_GDR_LEVEL=" +
                nccl_name(*nearest.distance) + " turns GPUDirect on, by " +
                to_string(nearest.proof.ways.best()) + "; measure first whether that is faster");
  finding.others = nearest_nics.nics;
  return finding;
}

std::string far_count_text(std::size_t count) {
  if (count == 0) return {};
  return "; " + std::to_string(count) + " farther NIC" + (count == 1 ? "" : "s") +
         " not used (normal)";
}

}  // namespace

std::vector<Finding> findings_of(const GpuReport& report, const std::string& sysfs_root) {
  if (report.level == Distance::kLoc) {
    return {about(report.gpu, kTurnedOff, Severity::kNote, kOffByUser)};
  }
  const Sorted sorted = sort(report, sysfs_root);
  std::vector<Finding> findings;
  if (!sorted.on.empty()) {
    findings.push_back(about(report.gpu, "gpudirect-on", Severity::kNote,
                             "on with " + sorted.on.in_brackets() +
                                 far_count_text(sorted.far.size()) + "; writes ordered " +
                                 ordering_text(report.gpu)));
    findings.back().others = sorted.on.nics();
  } else if (!sorted.far.empty()) {
    findings.push_back(too_far(sorted.far, report));
  }
  for (const Groups::Group& group : sorted.no_dmabuf.all()) {
    findings.front().fact += "; dma-buf fails with " + group.names() + ": " + group.said;
  }
  for (const Groups::Group& group : sorted.off.all()) {
    findings.push_back(about(report.gpu, "gpudirect-off", Severity::kWarning,
                             "off with " + group.names() + ": " + group.said));
    findings.back().others = group.nics;
    findings.back().fix = group.fix;
  }
  return findings;
}

Finding finding_without_gpu(std::span<const Answered> answers, Distance level) {
  if (level == Distance::kLoc) {
    return {.id = kTurnedOff, .fact = std::string("GPUDirect: ") + kOffByUser};
  }
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
  Finding finding = {.id = "gpudirect-not-tried"};
  finding.fact = "GPUDirect: this process uses no GPU yet, so nothing was tested";
  if (!good.empty()) finding.fact += "; the drivers offer it with " + good.in_brackets();
  if (!bad.empty()) finding.fact += "; it will be off with " + bad.in_brackets();
  return finding;
}

}  // namespace beeline::gdr
