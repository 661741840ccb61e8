// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/record_paths.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

namespace beeline::doctor {
namespace {

// A part with * or [ stands for all names that match it. The last part of a path is recorded
// whatever it is; above it, only folders and links to folders are followed.
constexpr std::array kPaths = {
    "/dev/infiniband/uverbs*",
    "/dev/kmsg",
    "/etc/nccl.conf",
    "/proc/cpuinfo",
    "/proc/driver/nvidia/version",
    "/proc/net/bonding/*",
    "/proc/net/dev",
    "/proc/net/route",
    "/proc/self/cgroup",
    "/proc/self/limits",
    "/proc/self/mounts",
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/net/ipv4/conf/*/arp_announce",
    "/proc/sys/net/ipv4/conf/*/arp_ignore",
    "/proc/sys/net/ipv4/conf/*/rp_filter",
    "/sys/bus/pci/devices/*",
    "/sys/bus/pci/devices/*/class",
    "/sys/bus/pci/devices/*/config",
    "/sys/bus/pci/devices/*/current_link_speed",
    "/sys/bus/pci/devices/*/current_link_width",
    "/sys/bus/pci/devices/*/device",
    "/sys/bus/pci/devices/*/driver",
    "/sys/bus/pci/devices/*/iommu_group/type",
    "/sys/bus/pci/devices/*/local_cpulist",
    "/sys/bus/pci/devices/*/max_link_speed",
    "/sys/bus/pci/devices/*/max_link_width",
    "/sys/bus/pci/devices/*/numa_node",
    "/sys/bus/pci/devices/*/physfn",
    "/sys/bus/pci/devices/*/resource",
    "/sys/bus/pci/devices/*/subsystem_device",
    "/sys/bus/pci/devices/*/subsystem_vendor",
    "/sys/bus/pci/devices/*/vendor",
    "/sys/class/drm/*",
    "/sys/class/infiniband/*",
    "/sys/class/infiniband/*/board_id",
    "/sys/class/infiniband/*/device",
    "/sys/class/infiniband/*/fw_ver",
    "/sys/class/infiniband/*/hca_type",
    "/sys/class/infiniband/*/node_type",
    "/sys/class/infiniband/*/parent",
    "/sys/class/infiniband/*/ports/*/counters/*",
    "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*",
    "/sys/class/infiniband/*/ports/*/gid_attrs/types/*",
    "/sys/class/infiniband/*/ports/*/gids/*",
    "/sys/class/infiniband/*/ports/*/hw_counters/*",
    "/sys/class/infiniband/*/ports/*/lid",
    "/sys/class/infiniband/*/ports/*/link_layer",
    "/sys/class/infiniband/*/ports/*/phys_state",
    "/sys/class/infiniband/*/ports/*/pkeys/0",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/class/infiniband/*/ports/*/sm_lid",
    "/sys/class/infiniband/*/ports/*/state",
    "/sys/class/infiniband/*/tc/*/traffic_class",
    "/sys/class/infiniband_verbs/uverbs*",
    "/sys/class/infiniband_verbs/uverbs*/ibdev",
    "/sys/class/net/*",
    "/sys/class/net/*/address",
    "/sys/class/net/*/bonding/mode",
    "/sys/class/net/*/carrier_changes",
    "/sys/class/net/*/dev_port",
    "/sys/class/net/*/device",
    "/sys/class/net/*/master",
    "/sys/class/net/*/mtu",
    "/sys/class/net/*/operstate",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/kernel/mm/memory_peers/*/version",
    "/sys/module/ib_core/parameters/netns_mode",
    "/sys/module/nv_peer_mem/version",
    "/sys/module/nvidia_peermem/version",
    "/usr/lib/aarch64-linux-gnu/libnccl.so.2",
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2",
    "/usr/lib64/libnccl.so.2",
    "/usr/local/cuda/lib64/libnccl.so.2",
    "/usr/local/lib/libnccl.so.2",
    "/var/run/nvidia-topologyd/virtualTopology.xml",
};

constexpr std::array<std::string_view, 10> kVariables = {
    "BEELINE_", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD", "MLX5_",
    "NCCL_",    "NVIDIA_VISIBLE",       "OMP_NUM_THREADS", "RDMAV_",     "PYTORCH_CUDA"};

bool is_pattern(std::string_view part) noexcept {
  return part.find_first_of("*[") != std::string_view::npos;
}

// `at`: where the next part begins.
void expand(const checks::Tree& tree, const std::string& above, std::string_view rest,
            const std::function<void(const std::string&)>& take) {
  const std::size_t end = rest.find('/');
  const std::string part(rest.substr(0, end));
  const bool is_last = end == std::string_view::npos;
  const auto visit = [&](const std::string& name) {
    const std::string path = above + "/" + name;
    if (is_last) return take(path);
    if (tree.has(path)) expand(tree, path, rest.substr(end + 1), take);
  };
  if (!is_pattern(part)) return visit(part);
  for (const std::string& name : tree.names(above)) {
    if (::fnmatch(part.c_str(), name.c_str(), 0) == 0) visit(name);
  }
}

// The cgroup of the process has a path of its own.
void expand_cgroup(const checks::Tree& tree, const std::function<void(const std::string&)>& take) {
  for (const std::string& line : tree.lines("/proc/self/cgroup")) {
    if (!line.starts_with("0::/")) continue;
    const std::string folder = "/sys/fs/cgroup" + (line == "0::/" ? "" : line.substr(3));
    take(folder + "/rdma.max");
    take(folder + "/rdma.current");
  }
}

}  // namespace

void each_recorded_path(const checks::Tree& tree,
                        const std::function<void(const std::string& path)>& take) {
  for (const char* const path : kPaths) {
    expand(tree, "", std::string_view(path).substr(1), take);
  }
  expand_cgroup(tree, take);
}

bool is_recorded(std::string_view variable) noexcept {
  return std::ranges::any_of(kVariables, [variable](std::string_view beginning) {
    return variable.starts_with(beginning);
  });
}

}  // namespace beeline::doctor
