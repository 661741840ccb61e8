// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/report.h"

#include <algorithm>
#include <cerrno>

#include "plugin/device/memlock.h"

namespace beeline::gdr {
namespace {

using topology::Distance;

constexpr const char* kOffByUser = "off, as NCCL_NET_GDR_LEVEL=LOC asks";
constexpr std::string_view kTurnedOff = "gpudirect-turned-off";

constexpr int kDmabufSince = 11070;  // CUDA 11.7

std::string for_peer_memory(const std::string& sysfs_root) {
  if (!is_peer_memory_loaded(sysfs_root)) {
    return "load NVIDIA's peer-memory module: modprobe nvidia-peermem";
  }
  return "nvidia_peermem is loaded but does not know the pointer, because it was built for other "
         "RDMA drivers; reinstall NVIDIA's driver after them, then modprobe -r nvidia_peermem && "
         "modprobe nvidia_peermem";
}

std::string for_dmabuf(const Proof& proof, const gpu::Cuda& cuda, const gpu::Gpu& gpu) {
  if (cuda.version < kDmabufSince)
    return "update NVIDIA's driver to CUDA 11.7 or later for dma-bufs";
  if (!gpu.dmabuf) return "install NVIDIA's open kernel modules (Linux 5.12 or later) for dma-bufs";
  if (is_not_supported(proof.ways.dmabuf.sys_errno)) {
    return "update the NIC's driver, or the kernel to Linux 5.12 or later, for dma-bufs";
  }
  return {};
}

std::string for_memory(const gpu::Gpu& gpu, const std::string& sysfs_root) {
  const std::size_t window = gpu::reachable_bytes(sysfs_root, gpu);
  const std::string what = window == 0
                               ? "the GPU's window on the PCI bus (BAR1) may be used up"
                               : "the GPU's window on the PCI bus (BAR1) has " + bytes_text(window);
  return what + ": turn on 'Resizable BAR' and 'Above 4G decoding' in the firmware" +
         memlock_advice({Errc::kNoMemory, ENOMEM, ""});
}

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

// One sentence with a command or with what to install; empty if nothing helps.
std::string fix_for(const Proof& proof, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
                    const std::string& sysfs_root) {
  if (!gpu.gdr) return {};
  if (proof.is_blocked) {
    return "PCI access control (ACS) or the IOMMU blocks or redirects the transfers: boot with "
           "iommu=pt, and "
           "turn ACS off on the bridges above both (setpci -s BRIDGE ECAP_ACS+0x6.w=0000); in a "
           "virtual machine ATS has to be on instead";
  }
  // The failure has another reason, which its text says.
  if (proof.ways.any() || proof.ways.peermem.why_not.empty()) return {};
  if (proof.ways.dmabuf.sys_errno == ENOMEM || proof.ways.peermem.sys_errno == ENOMEM) {
    return for_memory(gpu, sysfs_root);
  }
  const std::string other = for_dmabuf(proof, cuda, gpu);
  return for_peer_memory(sysfs_root) + (other.empty() ? "" : ", or " + other);
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
