// SPDX-License-Identifier: Apache-2.0
//
// Opens every device, looks at every port, and keeps those that can be used.
#include "plugin/device/device_scan.h"

#include <endian.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/base/log.h"
#include "plugin/device/memlock.h"
#include "plugin/device/netdev.h"
#include "plugin/device/pci_path.h"
#include "plugin/device/sysfs.h"
#include "plugin/verbs/async_event.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/query.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

constexpr int kMostPorts = 255;

bool may_admit(const HcaFilter& filter, const std::string& ibdev) {
  for (int port = 1; port <= kMostPorts; ++port) {
    if (judge(filter, ibdev, port).admitted) return true;
  }
  return false;
}

int numa_node_of(const std::string& pci_path) {
  const std::string text = pci_path.empty() ? "" : read_line(pci_path + "/numa_node");
  return text.empty() ? -1 : std::max(std::atoi(text.c_str()), -1);
}

Capabilities capabilities(const verbs::Api& api, const DeviceOptions& options,
                          const ibv_device_attr& attr, const Device& device) {
  const bool is_infiniband = device.link_layer == LinkLayer::kInfiniBand;
  return {.immediate = device.transport != Transport::kIwarp,
          .adaptive_routing = options.adaptive_routing == Tri::kAuto
                                  ? is_infiniband
                                  : options.adaptive_routing == Tri::kOn,
          .relaxed_ordering = options.relaxed_ordering != Tri::kOff && api.can_relax_ordering(),
          .dmabuf = api.can_register_dmabuf(),
          .max_qp_wr = attr.max_qp_wr,
          .max_sge = attr.max_sge,
          .max_cqe = attr.max_cqe,
          .max_rd_atomic = std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom)};
}

std::string device_name(const std::string& ibdev, int port) {
  return "beeline_" + ibdev + (port > 1 ? "_p" + std::to_string(port) : "");
}

}  // namespace

std::string inactive_text(const Device& device) {
  const bool is_infiniband = device.link_layer == LinkLayer::kInfiniBand;
  std::string text = device.ibdev + " port " + std::to_string(device.port) + " is " +
                     verbs::port_state_text(device.facts.state) + " and not used; ";
  if (is_infiniband && device.facts.state != IBV_PORT_DOWN) {
    return text + "no subnet manager has made it active: check that one runs (sminfo)";
  }
  if (is_infiniband) return text + "check the cable and the switch (ibstat)";
  return text + "check the cable and its network interface (ip link set " +
         (device.netdev.empty() ? "<interface>" : device.netdev) + " up)";
}

DeviceScan::DeviceScan(const verbs::Api& api, const DeviceOptions& options)
    : api_(api),
      options_(options),
      filter_(parse_hca_filter(options.hca_filter)),
      table_(new DeviceTable(api)) {
  table_->sysfs_root_ = options.sysfs_root;
}

Result<std::unique_ptr<DeviceTable>> DeviceScan::run() {
  for (const std::string& complaint : filter_.complaints) BL_WARN("%s", complaint.c_str());
  // Before the first registration, or a fork takes pages away from the NIC on kernels before 5.12.
  if (const int rc = api_.fork_init != nullptr ? api_.fork_init() : ENOSYS; rc != 0) {
    BL_INFO(kLogInit | kLogNet, "ibv_fork_init is refused (%s): safe on Linux 5.12 and later",
            std::strerror(rc > 0 ? rc : errno));
  }
  raise_memlock_limit();

  const verbs::DeviceList list = BL_TRY(verbs::DeviceList::get(api_));
  for (ibv_device* const device : list.devices()) visit(device);
  finish();
  report();
  return std::move(table_);
}

void DeviceScan::visit(ibv_device* device) {
  const std::string ibdev = api_.get_device_name(device);
  using Why = UnusedPort::Why;
  if (!may_admit(filter_, ibdev)) {
    return leave_out(ibdev, 0, Why::kFiltered, ibdev + " is not in the device filter");
  }
  const bool is_iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
  if (device->transport_type != IBV_TRANSPORT_IB && !is_iwarp) {
    return leave_out(ibdev, 0, Why::kUnsupportedTransport,
                     ibdev + " is neither InfiniBand, RoCE nor iWARP and not used");
  }
  auto context = verbs::open_device(api_, device);
  if (!context) {
    return leave_out(ibdev, 0, Why::kFailed,
                     ibdev + " is not used: " + describe(context.error()) +
                         (context.error().code == Errc::kDenied
                              ? "; /dev/infiniband/uverbs* must be readable and writable"
                              : ""));
  }
  const auto attr = verbs::query_device(api_, context->get());
  const Status quiet = verbs::make_events_nonblocking(context->get());
  if (!attr || !quiet) {
    return leave_out(ibdev, 0, Why::kFailed,
                     ibdev + " is not used: " + describe(attr ? quiet.error() : attr.error()));
  }
  auto& owned = table_->contexts_.emplace_back(
      std::make_unique<DeviceContext>(std::move(*context), ibdev, 0));
  visit_ports(*owned, *attr, is_iwarp ? Transport::kIwarp : Transport::kInfiniBand);
}

void DeviceScan::visit_ports(DeviceContext& context, const ibv_device_attr& attr,
                             Transport ib_or_iwarp) {
  for (int port = 1; port <= attr.phys_port_cnt; ++port) {
    visit_port(context, attr, ib_or_iwarp, static_cast<std::uint8_t>(port));
  }
}

void DeviceScan::visit_port(DeviceContext& context, const ibv_device_attr& attr,
                            Transport ib_or_iwarp, std::uint8_t port) {
  using Why = UnusedPort::Why;
  const std::string& ibdev = context.ibdev();
  const std::string place = ibdev + " port " + std::to_string(port);
  const HcaVerdict verdict = judge(filter_, ibdev, port);
  if (!verdict.admitted) {
    return leave_out(ibdev, port, Why::kFiltered, place + " is not in the device filter");
  }
  auto reading = read_port_facts(api_, {context.raw(), ibdev, port}, options_.sysfs_root);
  if (!reading) {
    return leave_out(ibdev, port, Why::kFailed,
                     place + " is not used: " + describe(reading.error()));
  }
  Device device;
  device.port = port;
  device.rail = verdict.rail;
  device.plane = verdict.plane;
  device.context = &context;
  fill(device, attr, *std::move(reading), ib_or_iwarp);
  if (device.transport == Transport::kIwarp && !options_.allow_iwarp) {
    return leave_out(ibdev, port, Why::kUnsupportedTransport,
                     place + " is iWARP, which needs librdmacm (package librdmacm1): not used");
  }
  if (!device.facts.is_active()) {
    return leave_out(ibdev, port, Why::kNotActive, inactive_text(device));
  }
  table_->devices_.push_back(std::move(device));
}

void DeviceScan::fill(Device& device, const ibv_device_attr& attr, PortReading reading,
                      Transport ib_or_iwarp) const {
  const std::string& ibdev = device.context->ibdev();
  const bool is_iwarp = ib_or_iwarp == Transport::kIwarp;
  const bool is_ethernet = is_iwarp || reading.link_layer == IBV_LINK_LAYER_ETHERNET;
  device.name = device_name(ibdev, device.port);
  device.ibdev = ibdev;
  device.link_layer = is_ethernet ? LinkLayer::kEthernet : LinkLayer::kInfiniBand;
  device.transport = is_iwarp      ? Transport::kIwarp
                     : is_ethernet ? Transport::kRoce
                                   : Transport::kInfiniBand;
  device.guid = be64toh(attr.sys_image_guid != 0 ? attr.sys_image_guid : attr.node_guid);
  if (is_ethernet) {
    device.netdev = netdev_of({.sysfs_root = options_.sysfs_root,
                               .ibdev = ibdev,
                               .port = device.port,
                               .is_iwarp = is_iwarp,
                               .gids = reading.facts.gids});
  }
  device.pci_path = pci_path_of(options_.sysfs_root, ibdev, device.netdev);
  device.card_path = card_path_of(device.pci_path);
  device.numa_node = numa_node_of(device.pci_path);
  device.caps = capabilities(api_, options_, attr, device);
  device.caps.max_msg_bytes = reading.max_msg_bytes;
  device.facts = std::move(reading.facts);
}

void DeviceScan::leave_out(const std::string& ibdev, std::uint8_t port, UnusedPort::Why why,
                           std::string text) {
  table_->unused_.push_back({.ibdev = ibdev, .port = port, .why = why, .text = std::move(text)});
}

void DeviceScan::finish() {
  auto& devices = table_->devices_;
  if (options_.pci_order) sort_devices(devices);
  tell_ports_apart(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].index = static_cast<int>(i);

  std::erase_if(table_->contexts_, [&](const std::unique_ptr<DeviceContext>& context) {
    return std::ranges::find(devices, context.get(), &Device::context) == devices.end();
  });
  for (std::size_t i = 0; i < table_->contexts_.size(); ++i) {
    table_->contexts_[i]->index_ = static_cast<int>(i);
  }
}

void DeviceScan::report() const {
  std::string filtered;
  for (const UnusedPort& port : table_->unused_) {
    switch (port.why) {
      case UnusedPort::Why::kFiltered:
        filtered += (filtered.empty() ? "" : ", ") + port.ibdev +
                    (port.port == 0 ? "" : ":" + std::to_string(port.port));
        break;
      case UnusedPort::Why::kNotActive:
      case UnusedPort::Why::kFailed: BL_WARN("%s", port.text.c_str()); break;
      case UnusedPort::Why::kUnsupportedTransport:
        BL_INFO(kLogInit | kLogNet, "%s", port.text.c_str());
        break;
    }
  }
  // Of a filter that left something for the lines above, those say enough.
  const bool all_filtered = std::ranges::all_of(table_->unused_, [](const UnusedPort& port) {
    return port.why == UnusedPort::Why::kFiltered;
  });
  if (!table_->devices_.empty() || !all_filtered) return;
  if (table_->unused_.empty()) {
    BL_INFO(kLogInit | kLogNet, "there is no RDMA device on this host");
  } else {
    BL_WARN(
        "the device filter \"%s\" (NCCL_IB_HCA or BEELINE_HCA) leaves none of this host's RDMA "
        "devices: %s",
        options_.hca_filter.c_str(), filtered.c_str());
  }
}

Result<std::unique_ptr<DeviceTable>> DeviceTable::scan(const verbs::Api& api,
                                                       const DeviceOptions& options) {
  return DeviceScan(api, options).run();
}

Result<PortFacts> DeviceTable::read_port(const Device& device) const {
  auto reading = BL_TRY(
      read_port_facts(*api_, {device.context->raw(), device.ibdev, device.port}, sysfs_root_));
  return std::move(reading.facts);
}

}  // namespace beeline
