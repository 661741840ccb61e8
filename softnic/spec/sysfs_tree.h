// SPDX-License-Identifier: Apache-2.0
// Writes one host's sysfs root as a real host would show it: class/infiniband, class/net, the PCI
// tree with NICs and GPUs, NUMA nodes. Readers reach it through BEELINE_SYSFS_ROOT; hwloc, which
// wants the root above /sys, takes the same directory as HWLOC_FSROOT.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

// The PCI identity of a softnic, also its ibv_device_attr::vendor_id and vendor_part_id.
inline constexpr std::uint32_t kPciVendor = 0xb1ff;  // belongs to nobody
inline constexpr std::uint32_t kPciDevice = 0x0001;
inline constexpr const char* kFirmwareVersion = "softnic";

// The spec must be complete(). A file that cannot be written is an error that names it.
beeline::Outcome<void> write_sysfs_tree(const HostSpec& host, const std::string& root);

// Shows the port as up or down: ports/N/state and phys_state, and the netdev's operstate/carrier.
void show_port_state(const std::string& root, const std::string& device, std::uint32_t port_number,
                     bool up);

// An entry of the port's GID table: gids/INDEX and gid_attrs; null for one that is empty now.
void show_gid(const std::string& root, const std::string& device, std::uint32_t port_number,
              std::uint32_t index, const GidSpec* gid);

void show_pkey(const std::string& root, const std::string& device, std::uint32_t port_number,
               std::uint32_t pkey);

// A device that is not present has no entry in class/infiniband, infiniband_verbs and net, nor
// below its PCI function. It comes back with the entries it had; what changed meanwhile is shown
// anew by the caller.
void show_device(const std::string& root, const std::string& device, bool present);

}  // namespace softnic
