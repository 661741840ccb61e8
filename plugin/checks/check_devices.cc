// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"
#include "topology/read/sysfs_text.h"

namespace beeline::checks {
namespace {

struct Module {
  const char* vendor;
  const char* name;
};
// By the PCI vendor of the adapter.
constexpr std::array<Module, 6> kModules = {{{"0x15b3", "mlx5_ib"},
                                             {"0x14e4", "bnxt_re"},
                                             {"0x8086", "irdma"},
                                             {"0x1dd8", "ionic_rdma"},
                                             {"0x1d0f", "efa"},
                                             {"0x1425", "iw_cxgb4"}}};

// A network controller of the host whose vendor makes RDMA adapters.
std::pair<std::string, std::string> adapter_and_module(const Tree& tree) {
  const std::string folder = "/sys/bus/pci/devices/";
  for (const std::string& address : tree.names(folder)) {
    if (!tree.line(folder + address + "/class").starts_with("0x02")) continue;
    const std::string vendor = tree.line(folder + address + "/vendor");
    const auto module = std::ranges::find(kModules, vendor, &Module::vendor);
    // Most of Intel's network controllers have no RDMA.
    if (module != kModules.end() && vendor != "0x8086") return {address, module->name};
  }
  return {};
}

void find_no_device(const Host& host, Findings& found) {
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

// What libibverbs says about a device, if it is known; null if it does not list it.
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
  switch (device.uverbs.empty() ? Access::kAbsent : host.tree.access(path)) {
    case Access::kRead: return check_library(host, device, seen, found);
    case Access::kAbsent:
      return found.add("device-node-missing",
                       {.subject = device.name,
                        .fact = device.uverbs.empty()
                                    ? device.name + " has no uverbs device: ib_uverbs is not loaded"
                                    : path + ", which belongs to " + device.name + ", is missing",
                        .source = device.uverbs.empty() ? "/sys/class/infiniband_verbs" : path});
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
  if (host.devices.empty()) return find_no_device(host, found);
  if (host.verbs && !host.verbs->error.empty()) {
    found.add("libibverbs-missing", {.fact = "there is no list of devices: " + host.verbs->error});
  }
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
    std::string& devices = versions[device.model][device.firmware];
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
