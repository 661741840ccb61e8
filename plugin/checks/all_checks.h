// SPDX-License-Identifier: Apache-2.0
//
// The checks of one host, grouped by what they look at. Each function looks at everything that
// belongs to its subject, and adds what it finds.
#pragma once

#include <vector>

#include "plugin/checks/findings.h"
#include "plugin/checks/host.h"
#include "plugin/checks/port_counters.h"

namespace beeline::checks {

void check_devices(const Host& host, Findings& found);
void check_firmware(const Host& host, Findings& found);
void check_ports(const Host& host, Findings& found);
void check_mtus(const Host& host, Findings& found);
void check_counters(const Host& host, const CounterSamples& samples, Findings& found);
void check_gids(const Host& host, Findings& found);
void check_subnets(const Host& host, Findings& found);
void check_bonds(const Host& host, Findings& found);
void check_peer_memory(const Host& host, Findings& found);
void check_gpu_windows(const Host& host, Findings& found);
void check_topology(const Host& host, Findings& found);
void check_access_control(const Host& host, Findings& found);
void check_iommu(const Host& host, Findings& found);
void check_functions(const Host& host, Findings& found);
void check_limits(const Host& host, Findings& found);
void check_rdma_cgroup(const Host& host, Findings& found);
void check_shared_memory(const Host& host, Findings& found);
void check_processors(const Host& host, Findings& found);
void check_traffic_class(const Host& host, Findings& found);
void check_plugin(const Host& host, Findings& found);
void check_settings(const Host& host, Findings& found);
void check_device_filter(const Host& host, Findings& found);
void check_nccl(const Host& host, Findings& found);
void check_kernel_log(const Host& host, Findings& found);

// Makes all of them.
std::vector<Finding> check_host(const Host& host, const CounterSamples& samples);

}  // namespace beeline::checks
