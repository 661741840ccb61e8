// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "plugin/checks/all_checks.h"

namespace beeline::checks {
namespace {

constexpr const char* kDriver = "/proc/driver/nvidia/version";
constexpr std::uint64_t kSmallWindow = std::uint64_t{256} << 20;
// The first kernel with dma-bufs that a NIC can register.
constexpr std::pair<int, int> kDmabufKernel{5, 12};

bool has_peer_memory(const Tree& tree) {
  // nv_peer_mem is the name of nvidia_peermem before driver 470.
  return tree.has("/sys/module/nvidia_peermem") || tree.has("/sys/module/nv_peer_mem") ||
         tree.has("/sys/kernel/mm/memory_peers/nv_mem") ||
         tree.has("/sys/kernel/mm/memory_peers/nv_mem_nc");
}

// Why dma-bufs cannot be registered; empty if nothing speaks against it.
std::string why_no_dmabuf(const Tree& tree) {
  if (tree.read(kDriver).text.find("Open Kernel Module") == std::string::npos) {
    return "NVIDIA's kernel modules are not the open ones";
  }
  const std::string release = tree.line("/proc/sys/kernel/osrelease");
  std::pair<int, int> version;
  if (std::sscanf(release.c_str(), "%d.%d", &version.first, &version.second) == 2 &&
      version < kDmabufKernel) {
    return "the kernel is " + release + ", older than 5.12";
  }
  return {};
}

std::string driver_version(const std::string& text) {
  constexpr std::string_view kBefore = "Kernel Module";
  const std::size_t at = text.find(kBefore);
  if (at == std::string::npos) return {};
  const std::size_t from = text.find_first_of("0123456789", at);
  // "Kernel Module for x86_64  550.54.15": the version is the first word of digits and dots.
  for (std::size_t start = from; start != std::string::npos;) {
    const std::size_t end = text.find_first_not_of("0123456789.", start);
    std::string word = text.substr(start, end - start);
    if (word.find('.') != std::string::npos) return word;
    start = end == std::string::npos ? end : text.find_first_of("0123456789", end);
  }
  return {};
}

// The largest region of the function: the lines are start, end and flags.
std::uint64_t largest_region(const Tree& tree, const std::string& path) {
  std::uint64_t largest = 0;
  for (const std::string& line : tree.lines(path)) {
    unsigned long long start = 0;
    unsigned long long end = 0;
    if (std::sscanf(line.c_str(), "%llx %llx", &start, &end) == 2 && end > start) {
      largest = std::max<std::uint64_t>(largest, end - start + 1);
    }
  }
  return largest;
}

}  // namespace

void check_peer_memory(const Host& host, Findings& found) {
  const bool has_nvidia = std::ranges::any_of(host.gpus, &Gpu::is_nvidia);
  if (!has_nvidia || host.devices.empty() || !host.tree.has(kDriver)) return;
  if (has_peer_memory(host.tree)) return;
  for (const std::string& line : host.tree.lines("/dev/kmsg")) {
    if (line.find("nvidia_peermem: disagrees about version of symbol") == std::string::npos) {
      continue;
    }
    return found.add("peer-memory-other-kernel",
                     {.fact = "the kernel has refused to load nvidia-peermem: " +
                              line.substr(line.find("nvidia_peermem")),
                      .source = "/dev/kmsg"},
                     {{"version", driver_version(host.tree.read(kDriver).text)}});
  }
  const std::string why = why_no_dmabuf(host.tree);
  if (why.empty()) return;
  found.add("gpudirect-no-way",
            {.fact = "no peer-memory module is loaded, and there are no dma-bufs: " + why,
             .source = kDriver});
}

void check_gpu_windows(const Host& host, Findings& found) {
  for (const Gpu& gpu : host.gpus) {
    if (!gpu.is_nvidia) continue;
    const std::string path = "/sys/bus/pci/devices/" + gpu.pci + "/resource";
    const std::uint64_t bytes = largest_region(host.tree, path);
    if (bytes == 0 || bytes > kSmallWindow) continue;
    found.add("gpu-window-small",
              {.subject = gpu.name,
               .fact = "the window of " + gpu.name + " has " + std::to_string(bytes >> 20) + " MiB",
               .source = path});
  }
}

}  // namespace beeline::checks
