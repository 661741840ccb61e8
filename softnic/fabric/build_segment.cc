// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/build_segment.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/base/clock.h"

namespace softnic {
namespace {

// The segment is zero before, so the copy is terminated.
template <std::size_t kSize>
void copy_name(char (&to)[kSize], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), kSize - 1));
}

void build_gid(const GidSpec& spec, GidRecord& record) {
  std::uint64_t halves[2];
  std::memcpy(halves, spec.raw.data(), sizeof halves);
  record.high.store(halves[0]);
  record.low.store(halves[1]);
  record.state.store(1 + static_cast<std::uint32_t>(spec.kind));
}

void build_port(const PortSpec& spec, LinkLayer link_layer, PortRecord& record) {
  copy_name(record.network, spec.network);
  copy_name(record.netdev, spec.netdev);
  record.gbps = spec.gbps;
  record.mtu = spec.mtu;
  record.gid_table_len = std::min(spec.gid_table_len, kMaxGids);
  record.lid.store(spec.lid);
  record.link_layer = link_layer;
  record.file_rate = spec.rate_bytes_s;
  record.file_latency = spec.latency_ns;
  record.rate_bytes_s.store(spec.rate_bytes_s);
  record.latency_ns.store(spec.latency_ns);
  const bool shaped = spec.rate_bytes_s != 0 || spec.latency_ns != 0;
  record.faults.store((spec.up ? 0u : kFaultDown) | (shaped ? kFaultShaped : 0u));
  record.reported_down.store(spec.up ? 0 : 1);
  record.pkey.store(kDefaultPkey);
  record.reported_pkey.store(kDefaultPkey);
  for (const GidSpec& gid : spec.gids) {
    if (gid.index < kMaxGids) build_gid(gid, record.gids[gid.index]);
  }
}

}  // namespace

void build_segment(const FabricSpec& spec, FabricHeader& header) {
  header.magic = kFabricMagic;
  header.layout_version = kLayoutVersion;
  header.clock_scale = spec.clock_scale;
  header.seed = spec.seed;
  header.started_ns = beeline::now_ns();
  header.hazards.scatter.store(spec.hazards.scatter ? 1 : 0);
  header.hazards.hide.store(spec.hazards.hide ? 1 : 0);
  header.hazards.bunch_ns.store(spec.hazards.bunch_ns);
  header.hazards.command_ns.store(spec.hazards.command_ns);
  header.next_epoch.store(1);
  for (const HostSpec& host : spec.hosts) {
    HostRecord& host_record = header.hosts[header.host_count];
    copy_name(host_record.name, host.name);
    host_record.first_device = header.device_count;
    host_record.device_count = static_cast<std::uint32_t>(host.devices.size());
    for (const DeviceSpec& device : host.devices) {
      DeviceRecord& record = header.devices[header.device_count];
      copy_name(record.name, device.name);
      record.host = header.host_count;
      record.index_on_host = header.device_count - host_record.first_device;
      record.guid = device.guid;
      for (const PortSpec& port : device.ports) {
        if (record.port_count == kMaxPorts) break;
        build_port(port, device.link_layer, record.ports[record.port_count++]);
      }
      ++header.device_count;
    }
    ++header.host_count;
  }
}

}  // namespace softnic
