// SPDX-License-Identifier: Apache-2.0
// Writes the sysfs tree of one host as a real host shows it: class/infiniband, class/net, the PCI
// tree with NICs and GPUs, NUMA nodes. Programs find it by BEELINE_SYSFS_ROOT. hwloc expects the
// directory above /sys and takes the same path as HWLOC_FSROOT.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

// The PCI identity of a softnic device, also in ibv_device_attr::vendor_id and vendor_part_id.
inline constexpr std::uint32_t kPciVendor = 0xb1ff;  // not assigned to any vendor
inline constexpr std::uint32_t kPciDevice = 0x0001;
inline constexpr const char* kFirmwareVersion = "softnic";

// The spec must be complete(). The error names the file that cannot be written.
beeline::Outcome<void> write_sysfs_tree(const HostSpec& host, const std::string& root);

// Writes the state of a port: ports/N/state and phys_state, and operstate and carrier of the
// netdev.
void show_port_state(const std::string& root, const std::string& device, std::uint32_t port_number,
                     bool up);

// Writes an entry of the port's GID table: gids/INDEX and gid_attrs. Null: the entry is empty.
void show_gid(const std::string& root, const std::string& device, std::uint32_t port_number,
              std::uint32_t index, const GidSpec* gid);

void show_pkey(const std::string& root, const std::string& device, std::uint32_t port_number,
               std::uint32_t pkey);

void show_lid(const std::string& root, const std::string& device, std::uint32_t port_number,
              std::uint32_t lid);

// Removes a device from class/infiniband, infiniband_verbs and net and from its PCI function, or
// puts the same entries back. The caller then writes what has changed in the meantime.
void show_device(const std::string& root, const std::string& device, bool present);

}  // namespace softnic
