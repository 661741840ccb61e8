// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/all_checks.h"

#include <array>

namespace beeline::checks {

std::vector<Finding> check_host(const Host& host, const CounterSamples& samples) {
  constexpr std::array kChecks = {
      check_devices,       check_firmware,      check_ports,          check_mtus,
      check_gids,          check_subnets,       check_bonds,          check_peer_memory,
      check_gpu_windows,   check_topology,      check_access_control, check_iommu,
      check_functions,     check_limits,        check_rdma_cgroup,    check_shared_memory,
      check_processors,    check_traffic_class, check_plugin,         check_settings,
      check_device_filter, check_nccl,          check_kernel_log,
  };
  Findings found;
  for (const auto& check : kChecks) check(host, found);
  check_counters(host, samples, found);
  return found.take();
}

}  // namespace beeline::checks
