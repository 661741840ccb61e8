// SPDX-License-Identifier: Apache-2.0
// The files that the kernel's RDMA core shows for a device and its ports
// (drivers/infiniband/core/sysfs.c), and those of the Ethernet interface of a RoCE port.
#include <fmt/format.h>

#include "softnic/spec/link_rate.h"
#include "softnic/spec/sysfs_parts.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

constexpr const char* kCounters[] = {"VL15_dropped",
                                     "excessive_buffer_overrun_errors",
                                     "link_downed",
                                     "link_error_recovery",
                                     "local_link_integrity_errors",
                                     "multicast_rcv_packets",
                                     "multicast_xmit_packets",
                                     "port_rcv_constraint_errors",
                                     "port_rcv_data",
                                     "port_rcv_errors",
                                     "port_rcv_packets",
                                     "port_rcv_remote_physical_errors",
                                     "port_rcv_switch_relay_errors",
                                     "port_xmit_constraint_errors",
                                     "port_xmit_data",
                                     "port_xmit_discards",
                                     "port_xmit_packets",
                                     "port_xmit_wait",
                                     "symbol_error",
                                     "unicast_rcv_packets",
                                     "unicast_xmit_packets"};

// The names that mlx5 uses, because people and tools look for these.
constexpr const char* kHwCounters[] = {"duplicate_request",
                                       "implied_nak_seq_err",
                                       "local_ack_timeout_err",
                                       "np_cnp_sent",
                                       "np_ecn_marked_roce_packets",
                                       "out_of_buffer",
                                       "out_of_sequence",
                                       "packet_seq_err",
                                       "req_cqe_error",
                                       "req_cqe_flush_error",
                                       "resp_cqe_error",
                                       "resp_cqe_flush_error",
                                       "rnr_nak_retry_err",
                                       "roce_adp_retrans",
                                       "roce_slow_restart",
                                       "rp_cnp_handled",
                                       "rx_read_requests",
                                       "rx_write_requests"};

std::string guid_text(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff,
                     guid >> 16 & 0xffff, guid & 0xffff);
}

const char* gid_type_text(GidKind kind) {
  return kind == GidKind::kRoceV2 ? "RoCE v2" : "IB/RoCE v1";
}

void write_gids(SysfsWriter& out, const PortSpec& port, const std::string& dir) {
  for (std::uint32_t index = 0; index < port.gid_table_len; ++index) {
    const GidSpec* found = nullptr;
    for (const GidSpec& gid : port.gids)
      if (gid.index == index) found = &gid;
    const GidTexts texts = gid_texts(found, port.netdev);
    out.file(fmt::format("{}gids/{}", dir, index), texts.address);
    out.file(fmt::format("{}gid_attrs/types/{}", dir, index), texts.type);
    out.file(fmt::format("{}gid_attrs/ndevs/{}", dir, index), texts.netdev);
  }
}

void write_port(SysfsWriter& out, const DeviceSpec& device, const PortSpec& port,
                const std::string& dir) {
  const bool ethernet = device.link_layer == LinkLayer::kEthernet;
  out.line(dir + "state", state_text(port.up));
  out.line(dir + "phys_state", phys_state_text(port.up, device.link_layer));
  const LinkRate* const rate = find_link_rate(port.gbps);
  out.line(dir + "rate", rate == nullptr ? "2.5 Gb/sec (1X SDR)" : rate->text);
  out.line(dir + "lid", fmt::format("0x{:x}", port.lid));
  out.line(dir + "lid_mask_count", "0");
  out.line(dir + "sm_lid", ethernet ? "0x0" : "0x1");
  out.line(dir + "sm_sl", "0");
  out.line(dir + "cap_mask", ethernet ? "0x00010000" : "0x02514868");
  out.line(dir + "link_layer", ethernet ? "Ethernet" : "InfiniBand");
  out.line(dir + "pkeys/0", "0xffff");
  write_gids(out, port, dir);
  for (const char* name : kCounters) out.line(fmt::format("{}counters/{}", dir, name), "0");
  for (const char* name : kHwCounters) out.line(fmt::format("{}hw_counters/{}", dir, name), "0");
  out.line(dir + "hw_counters/lifespan", "10");
}

void write_uverbs(SysfsWriter& out, const DeviceSpec& device, std::uint32_t index,
                  const std::string& pci_dir) {
  const std::string dir = fmt::format("{}/infiniband_verbs/uverbs{}", pci_dir, index);
  out.line(dir + "/ibdev", device.name);
  out.line(dir + "/dev", fmt::format("231:{}", 192 + index));  // major 231, as the kernel has it
  out.line(dir + "/abi_version", "1");
  out.link(dir + "/device", pci_dir);
  out.link(dir + "/subsystem", "class/infiniband_verbs");
  out.link(fmt::format("class/infiniband_verbs/uverbs{}", index), dir);
}

// An MTU with room for the RoCE headers, as administrators configure it.
std::uint32_t netdev_mtu(std::uint32_t ib_mtu) {
  switch (ib_mtu) {
    case 4096: return 9000;
    case 2048: return 2200;
    case 1024: return 1500;
    default: return ib_mtu + 88;
  }
}

}  // namespace

// For an empty entry the kernel answers reads of type and ndev with EINVAL. A plain file cannot do
// that, so these files are empty.
GidTexts gid_texts(const GidSpec* gid, const std::string& netdev) {
  if (gid == nullptr) return {gid_text(GidSpec{}.raw) + "\n", "", ""};
  return {gid_text(gid->raw) + "\n", std::string(gid_type_text(gid->kind)) + "\n",
          netdev.empty() ? "" : netdev + "\n"};
}

const char* state_text(bool up) { return up ? "4: ACTIVE" : "1: DOWN"; }

const char* phys_state_text(bool up, LinkLayer link_layer) {
  if (up) return "5: LinkUp";
  return link_layer == LinkLayer::kEthernet ? "3: Disabled" : "2: Polling";
}

void write_rdma_device(SysfsWriter& out, const HostSpec& host, const DeviceSpec& device,
                       std::uint32_t index, const std::string& pci_dir) {
  const std::string dir = fmt::format("{}/infiniband/{}/", pci_dir, device.name);
  out.line(dir + "node_type", "1: CA");
  out.line(dir + "node_guid", guid_text(device.guid));
  out.line(dir + "sys_image_guid", guid_text(device.guid));
  out.line(dir + "node_desc", fmt::format("{} {}", host.name, device.name));
  out.line(dir + "fw_ver", kFirmwareVersion);
  out.line(dir + "hca_type", "softnic");
  out.line(dir + "hw_rev", "0");
  out.line(dir + "board_id", "SOFTNIC0000001");
  out.link(dir + "device", pci_dir);
  out.link(dir + "subsystem", "class/infiniband");
  for (std::size_t p = 0; p < device.ports.size(); ++p)
    write_port(out, device, device.ports[p], fmt::format("{}ports/{}/", dir, p + 1));
  out.link("class/infiniband/" + device.name,
           fmt::format("{}/infiniband/{}", pci_dir, device.name));
  write_uverbs(out, device, index, pci_dir);
}

void write_netdev(SysfsWriter& out, const DeviceSpec& device, std::uint32_t port_number,
                  std::uint32_t ifindex, const std::string& pci_dir) {
  const PortSpec& port = device.ports[port_number - 1];
  const std::string link_dir = fmt::format("{}/net/{}", pci_dir, port.netdev);
  const std::string dir = link_dir + "/";
  out.line(dir + "address",
           fmt::format("{:02x}", fmt::join(port_mac(device.guid, port_number), ":")));
  out.line(dir + "mtu", std::to_string(netdev_mtu(port.mtu)));
  out.line(dir + "operstate", port.up ? "up" : "down");
  out.line(dir + "carrier", port.up ? "1" : "0");
  out.line(dir + "speed", std::to_string(port.gbps * 1000));
  out.line(dir + "duplex", "full");
  out.line(dir + "type", "1");
  out.line(dir + "ifindex", std::to_string(ifindex));
  out.line(dir + "dev_id", "0x0");
  out.line(dir + "dev_port", std::to_string(port_number - 1));
  out.link(dir + "device", pci_dir);
  out.link(dir + "subsystem", "class/net");
  out.link("class/net/" + port.netdev, link_dir);
}

}  // namespace softnic
