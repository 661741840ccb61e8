// SPDX-License-Identifier: Apache-2.0
//
// Opens every device, reads every port, and keeps those that can be used.
#include "plugin/device/device_scan.h"

#include <endian.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/device/memlock.h"
#include "plugin/device/netdev.h"
#include "plugin/device/sysfs.h"
#include "plugin/verbs/async_event.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/query.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

constexpr int kMostPorts = 255;
constexpr std::string_view kFiltered = "device-filtered";
constexpr std::string_view kFilterNotUnderstood = "device-filter-not-understood";

// `subject` is a device or a port of one.
Finding failed(const std::string& subject, const Error& error) {
  return {.id = "device-failed",
          .severity = Severity::kWarning,
          .subject = subject,
          .fact = subject + " is not used: " + describe(error)};
}

// Only a note, because the user cannot do anything about it.
Finding unsupported(const std::string& subject, const char* how) {
  return {.id = "device-unsupported",
          .severity = Severity::kNote,
          .subject = subject,
          .fact = subject + " " + how};
}

bool can_admit(const HcaFilter& filter, const std::string& ibdev) {
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
          .adaptive_routing = options.adaptive_routing.value_or(is_infiniband),
          .relaxed_ordering = options.relaxed_ordering.value_or(true) && api.can_relax_ordering(),
          .dmabuf = api.can_register_dmabuf(),
          .max_rd_atomic = std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom)};
}

std::string device_name(const std::string& ibdev, int port) {
  return "beeline_" + ibdev + (port > 1 ? "_p" + std::to_string(port) : "");
}

}  // namespace

Finding inactive_port(const Device& device) {
  const bool is_infiniband = device.link_layer == LinkLayer::kInfiniBand;
  Finding finding = {.id = "port-not-active",
                     .severity = Severity::kWarning,
                     .subject = label(device),
                     .fact = label(device) + " is " + verbs::port_state_text(device.facts.state) +
                             " and not used"};
  if (is_infiniband && device.facts.state != IBV_PORT_DOWN) {
    finding.why = "no subnet manager has made it active";
    finding.fix = "check that a subnet manager runs (sminfo)";
  } else if (is_infiniband) {
    finding.fix = "check the cable and the switch (ibstat)";
  } else {
    finding.fix = "check the cable and its network interface (ip link set " +
                  (device.netdev.empty() ? "<interface>" : device.netdev) + " up)";
  }
  return finding;
}

DeviceScan::DeviceScan(const verbs::Api& api, const DeviceOptions& options)
    : api_(api),
      options_(options),
      filter_(parse_hca_filter(options.hca_filter)),
      table_(new DeviceTable(api)) {
  table_->sysfs_root_ = options.sysfs_root;
}

Result<std::unique_ptr<DeviceTable>> DeviceScan::run() {
  for (const std::string& complaint : filter_.complaints) {
    find({.id = kFilterNotUnderstood, .severity = Severity::kWarning, .fact = complaint});
  }
  make_fork_safe();
  if (auto raised = raise_memlock_limit()) find(*std::move(raised));

  const verbs::DeviceList list = BL_TRY(verbs::DeviceList::get(api_));
  for (ibv_device* const device : list.devices()) scan_device(device);
  finish();
  explain_no_device();
  return std::move(table_);
}

// Must precede the first registration: otherwise, on kernels before 5.12, a fork takes registered
// pages away from the NIC.
void DeviceScan::make_fork_safe() {
  const int rc = api_.fork_init != nullptr ? api_.fork_init() : ENOSYS;
  if (rc == 0) return;
  find({.id = "fork-init-failed",
        .severity = Severity::kNote,
        .fact = std::string("ibv_fork_init is refused (") + std::strerror(rc > 0 ? rc : errno) +
                "): safe on Linux 5.12 and later"});
}

void DeviceScan::scan_device(ibv_device* device) {
  const std::string ibdev = api_.get_device_name(device);
  if (!can_admit(filter_, ibdev)) {
    return leave_out_by_filter(ibdev);
  }
  const bool is_iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
  if (device->transport_type != IBV_TRANSPORT_IB && !is_iwarp) {
    return find(unsupported(ibdev, "is neither InfiniBand, RoCE nor iWARP and not used"));
  }
  auto context = verbs::open_device(api_, device);
  if (!context) {
    Finding finding = failed(ibdev, context.error());
    if (context.error().code == Errc::kDenied) {
      finding.fix = "make /dev/infiniband/uverbs* readable and writable for this user";
    }
    return find(std::move(finding));
  }
  const auto attr = verbs::query_device(api_, context->get());
  const Status quiet = verbs::make_events_nonblocking(context->get());
  if (!attr || !quiet) return find(failed(ibdev, attr ? quiet.error() : attr.error()));
  auto& owned = table_->contexts_.emplace_back(
      std::make_unique<DeviceContext>(std::move(*context), ibdev, 0));
  for (int port = 1; port <= attr->phys_port_cnt; ++port) {
    scan_port(*owned, *attr, is_iwarp ? Transport::kIwarp : Transport::kInfiniBand,
              static_cast<std::uint8_t>(port));
  }
}

void DeviceScan::scan_port(DeviceContext& context, const ibv_device_attr& attr,
                           Transport ib_or_iwarp, std::uint8_t port) {
  const std::string& ibdev = context.ibdev();
  const std::string place = ibdev + " port " + std::to_string(port);
  const HcaVerdict verdict = judge(filter_, ibdev, port);
  if (!verdict.admitted) return leave_out_by_filter(ibdev + ":" + std::to_string(port));
  auto reading = read_port_facts(api_, {context.raw(), ibdev, port}, options_.sysfs_root);
  if (!reading) return find(failed(place, reading.error()));
  Device device;
  device.port = port;
  device.rail = verdict.rail;
  device.plane = verdict.plane;
  device.context = &context;
  fill(device, attr, *std::move(reading), ib_or_iwarp);
  if (device.transport == Transport::kIwarp && !options_.allow_iwarp) {
    return find(
        unsupported(place, "is iWARP, which needs librdmacm (package librdmacm1): not used"));
  }
  if (!device.facts.is_active()) return find(inactive_port(device));
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

void DeviceScan::leave_out_by_filter(const std::string& subject) {
  find({.id = kFiltered,
        .severity = Severity::kOk,
        .subject = subject,
        .fact = subject + " is not in the device filter"});
}

void DeviceScan::finish() {
  auto& devices = table_->devices_;
  if (options_.pci_order) sort_devices(devices);
  number_ports(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].index = static_cast<int>(i);

  std::erase_if(table_->contexts_, [&](const std::unique_ptr<DeviceContext>& context) {
    return std::ranges::find(devices, context.get(), &Device::context) == devices.end();
  });
  for (std::size_t i = 0; i < table_->contexts_.size(); ++i) {
    table_->contexts_[i]->index_ = static_cast<int>(i);
  }
  for (const Device& device : devices) table_->pointers_.push_back(&device);
}

// If ports were left out for other reasons than the filter, the findings about them say enough.
void DeviceScan::explain_no_device() {
  if (!table_->devices_.empty()) return;
  std::string filtered;
  for (const Finding& finding : table_->findings_) {
    if (finding.subject.empty()) continue;
    if (finding.id != kFiltered) return;
    filtered += (filtered.empty() ? "" : ", ") + finding.subject;
  }
  if (filtered.empty()) {
    find({.id = "no-rdma-device",
          .severity = Severity::kNote,
          .fact = "there is no RDMA device on this host"});
  } else {
    find({.id = "device-filter-leaves-none",
          .severity = Severity::kWarning,
          .fact = "the device filter \"" + options_.hca_filter +
                  "\" (NCCL_IB_HCA or BEELINE_HCA) leaves none of this host's RDMA devices: " +
                  filtered});
  }
}

bool DeviceTable::has_warned_of_no_device() const noexcept {
  return std::ranges::any_of(findings_, [](const Finding& finding) {
    return finding.severity == Severity::kWarning && finding.id != kFilterNotUnderstood;
  });
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
