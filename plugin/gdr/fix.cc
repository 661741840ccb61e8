// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/fix.h"

#include <unistd.h>

#include <cerrno>

#include "plugin/device/memlock.h"

namespace beeline::gdr {
namespace {

constexpr int kDmabufSince = 11070;  // CUDA 11.7

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

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

}  // namespace

bool is_peer_memory_loaded(const std::string& sysfs_root) {
  return exists(sysfs_root + "/module/nvidia_peermem") ||
         exists(sysfs_root + "/kernel/mm/memory_peers/nv_mem") ||
         exists(sysfs_root + "/kernel/mm/memory_peers/nv_mem_nc");
}

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

}  // namespace beeline::gdr
