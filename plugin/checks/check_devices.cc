// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

// An adapter by its PCI vendor, and by its Ethernet driver or the beginning of its device number,
// since these vendors make other network cards as well.
struct Module {
  std::string_view vendor;
  std::string_view driver;  // empty: any
  std::string_view device;  // empty: any
  const char* name;
};
constexpr std::array kModules = {
    Module{.vendor = "0x15b3", .driver = "", .device = "", .name = "mlx5_ib"},
    Module{.vendor = "0x14e4", .driver = "bnxt_en", .device = "", .name = "bnxt_re"},
    Module{.vendor = "0x8086", .driver = "ice", .device = "", .name = "irdma"},
    Module{.vendor = "0x1dd8", .driver = "ionic", .device = "", .name = "ionic_rdma"},
    Module{.vendor = "0x1d0f", .driver = "", .device = "0xefa", .name = "efa"},
    Module{.vendor = "0x1425", .driver = "cxgb4", .device = "", .name = "iw_cxgb4"}};

// A network controller of the host that has RDMA, and the module that it needs. Both may be empty.
std::pair<std::string, std::string> adapter_and_module(const Tree& tree) {
  const std::string functions = "/sys/bus/pci/devices";
  const std::vector<std::string> addresses = tree.names(functions);
  for (const Module& module : kModules) {
    for (const std::string& address : addresses) {
      const std::string folder = below(functions, address);
      const std::string driver = tree.link(folder + "/driver");
      if (!tree.line(folder + "/class").starts_with("0x02")) continue;
      if (tree.line(folder + "/vendor") != module.vendor) continue;
      if (!tree.line(folder + "/device").starts_with(module.device)) continue;
      if (!module.driver.empty() && !driver.ends_with(module.driver)) continue;
      return {address, module.name};
    }
  }
  return {};
}

void find_no_device(const Host& host, Findings& found) {
  constexpr const char* kClasses = "/sys/class";
  if (!host.tree.has(kClasses)) {
    return found.add(
        "no-rdma-device",
        {.fact = "no RDMA device can be found: /sys/class is not there, or this process "
                 "may not read it",
         .source = kClasses,
         .fix = "in a container, mount /sys"});
  }
  const auto [adapter, module] = adapter_and_module(host.tree);
  const bool has_adapter = !adapter.empty();
  found.add("no-rdma-device",
            {.fact = has_adapter
                         ? "the kernel has no RDMA device, though there is an adapter at " + adapter
                         : "the kernel has no RDMA device, and there is no adapter that "
                           "could be one",
             .source = "/sys/class/infiniband"},
            {{"module", module}});
}

// The device as libibverbs lists it; null if it does not. The list must be known.
const VerbsDevice* seen_by_verbs(const Host& host, const std::string& device) {
  const auto found = host.verbs->devices.find(device);
  return found == host.verbs->devices.end() ? nullptr : &found->second;
}

// The file of the device can be opened.
void check_library(const Host& host, const RdmaDevice& device, const VerbsDevice* seen,
                   Findings& found) {
  if (!host.verbs || !host.verbs->error.empty()) return;  // said once, or not known
  if (seen == nullptr) {
    found.add("provider-missing",
              {.subject = device.name,
               .fact = "libibverbs does not list " + device.name +
                       (device.driver.empty() ? "" : ", whose driver is " + device.driver),
               .source = device.folder});
  } else {
    found.add("device-not-opened", {.subject = device.name,
                                    .fact = device.name + " cannot be opened: " + seen->error,
                                    .source = device.folder});
  }
}

// Why a device cannot be used by a process: its file, its user-space driver, or another reason.
void check_node(const Host& host, const RdmaDevice& device, Findings& found) {
  const VerbsDevice* seen = nullptr;
  if (host.verbs && host.verbs->error.empty()) {
    seen = seen_by_verbs(host, device.name);
    if (seen != nullptr && seen->error.empty()) return;
  }
  const std::string path = "/dev/infiniband/" + device.uverbs;
  // A container often sees all devices of its host, and has been given some.
  std::optional<Severity> severity;
  if (host.can_open_any()) severity = Severity::kNote;
  switch (device.uverbs.empty() ? Access::kAbsent : host.tree.access(path)) {
    case Access::kRead: return check_library(host, device, seen, found);
    case Access::kAbsent:
      return found.add("device-node-missing",
                       {.subject = device.name,
                        .fact = device.uverbs.empty()
                                    ? device.name + " has no uverbs device: ib_uverbs is not loaded"
                                    : path + ", which belongs to " + device.name + ", is missing",
                        .source = device.uverbs.empty() ? "/sys/class/infiniband_verbs" : path,
                        .severity = severity});
    case Access::kDenied:
      return found.add(
          "device-node-denied",
          {.subject = device.name,
           .fact = path + ", which belongs to " + device.name + ", cannot be opened by this user",
           .source = path},
          {{"uverbs", device.uverbs}});
    case Access::kFailed:
      return found.add_unknown("device-node-denied",
                               {.subject = device.name,
                                .fact = path + " cannot be opened: " + host.tree.read(path).error,
                                .source = path});
  }
}

}  // namespace

void check_devices(const Host& host, Findings& found) {
  if (host.verbs && !host.verbs->error.empty()) {
    found.add("libibverbs-missing", {.fact = "there is no list of devices: " + host.verbs->error});
  }
  if (host.devices.empty()) return find_no_device(host, found);
  for (const RdmaDevice& device : host.devices) {
    check_node(host, device, found);
    if (device.is_iwarp) {
      found.add("iwarp-device",
                {.subject = device.name,
                 .fact = device.name + " runs iWARP",
                 .source = device.folder + "/node_type"},
                {{"pci", device.driver == "irdma" || device.driver == "ice" ? device.pci : ""}});
    }
  }
}

void check_firmware(const Host& host, Findings& found) {
  std::map<std::string, std::map<std::string, std::string>> versions;  // by model
  for (const RdmaDevice& device : host.devices) {
    if (device.model.empty() || device.firmware.empty() || device.is_soft()) continue;
    if (std::ranges::none_of(device.ports, &Port::is_wanted)) continue;
    std::string& devices = versions[device.kind()][device.firmware];
    append_item(devices, device.name);
  }
  for (const auto& [model, devices_of] : versions) {
    if (devices_of.size() < 2) continue;
    std::string text;
    for (const auto& [version, devices] : devices_of) {
      append_item(text, version);
      text += " on ";
      text += devices;
    }
    found.add("firmware-differs",
              {.subject = model,
               .fact = text.insert(0, "adapters of model " + model + " have different firmware: "),
               .source = "/sys/class/infiniband/*/fw_ver"});
  }
}

}  // namespace beeline::checks
