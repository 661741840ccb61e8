// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "softnic/fabric/port_ref.h"
#include "softnic/spec/names.h"

namespace softnic {
namespace {

using beeline::fail;

// The parts of "h0/softnic0:1".
struct PortText {
  std::string host;  // empty: any
  std::string device;
  std::string port;  // empty: 1
};

PortText split_port(const std::string& text) {
  PortText parts;
  const std::size_t slash = text.find('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t colon = text.find(':', start);
  if (slash != std::string::npos) parts.host = text.substr(0, slash);
  parts.device = text.substr(start, colon == std::string::npos ? colon : colon - start);
  if (colon != std::string::npos) parts.port = text.substr(colon + 1);
  return parts;
}

std::vector<std::string> host_names(const FabricHeader& header) {
  std::vector<std::string> names;
  for (std::uint32_t h = 0; h < header.host_count; ++h) names.emplace_back(header.hosts[h].name);
  return names;
}

// The names of devices on `host`, each once; on all hosts if `host` is empty.
std::vector<std::string> device_names(const FabricHeader& header, const std::string& host) {
  std::vector<std::string> names;
  for (std::uint32_t d = 0; d < header.device_count; ++d) {
    const DeviceRecord& device = header.devices[d];
    if (!host.empty() && host != header.hosts[device.host].name) continue;
    if (std::find(names.begin(), names.end(), device.name) == names.end())
      names.emplace_back(device.name);
  }
  return names;
}

beeline::Outcome<std::uint32_t> find_device(const Fabric& fabric, const PortText& wanted) {
  const FabricHeader& header = fabric.header();
  if (!wanted.host.empty() && !fabric.find_host(wanted.host))
    return fail(fmt::format("no host \"{}\" in fabric {}; its hosts are {}", wanted.host,
                            fabric.name(), list_text(host_names(header))));
  std::vector<std::string> owners;
  std::uint32_t found = 0;
  for (std::uint32_t d = 0; d < header.device_count; ++d) {
    const DeviceRecord& device = header.devices[d];
    const std::string host = header.hosts[device.host].name;
    if (wanted.device != device.name || (!wanted.host.empty() && wanted.host != host)) continue;
    owners.push_back(host);
    found = d;
  }
  if (owners.empty())
    return fail(fmt::format(
        "no device \"{}\" on {}; the devices are {}", wanted.device,
        wanted.host.empty() ? "any host of fabric " + fabric.name() : "host " + wanted.host,
        list_text(device_names(header, wanted.host))));
  if (owners.size() > 1)
    return fail(fmt::format("{0} is on {1}: name the host, for example {2}/{0}", wanted.device,
                            list_text(owners), owners.front()));
  return found;
}

beeline::Outcome<std::uint32_t> find_port_index(const DeviceRecord& device,
                                                const std::string& text) {
  if (text.empty()) return 0u;
  for (std::uint32_t number = 1; number <= device.port_count; ++number)
    if (text == std::to_string(number)) return number - 1;
  return fail(fmt::format("no port \"{}\" on {}; it has {}", text, device.name,
                          device.port_count == 1 ? "port 1 only" : "ports 1 and 2"));
}

}  // namespace

beeline::Outcome<PortRef> find_port(const Fabric& fabric, const std::string& text) {
  const PortText wanted = split_port(text);
  const std::uint32_t device = BL_TRY(find_device(fabric, wanted));
  const std::uint32_t port = BL_TRY(find_port_index(fabric.header().devices[device], wanted.port));
  return PortRef{device, port};
}

std::string device_name(const Fabric& fabric, std::uint32_t device) {
  const DeviceRecord& record = fabric.header().devices[device];
  return fmt::format("{}/{}", fabric.header().hosts[record.host].name, record.name);
}

std::string port_name(const Fabric& fabric, PortRef where) {
  return fmt::format("{}:{}", device_name(fabric, where.device), where.port + 1);
}

}  // namespace softnic
