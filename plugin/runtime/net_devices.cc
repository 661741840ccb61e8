// SPDX-License-Identifier: Apache-2.0
//
// The devices as NCCL sees them: their properties, and merging them.
#include <algorithm>

#include "common/base/log.h"
#include "plugin/device/net_devices.h"
#include "plugin/runtime/net.h"
#include "plugin/runtime/runtime.h"

namespace beeline::net {
namespace {

// Why the user's settings do not let NCCL merge devices; null if they do.
const char* why_not_merged(const Config& config) noexcept {
  if (config.rails > 1) {
    return "BEELINE_RAILS has merged them already, and NCCL gets them as they are; unset it to let "
           "NCCL merge devices";
  }
  if (!config.merge_nics) return "NCCL_IB_MERGE_NICS or BEELINE_MERGE_NICS is 0";
  return nullptr;
}

// The value of this field if it is the same for all ports, and otherwise -1.
int common_value(RailDevices ports, int Device::*value) noexcept {
  const int first = ports.front()->*value;
  const bool is_common =
      std::ranges::all_of(ports, [&](const Device* port) { return port->*value == first; });
  return is_common ? first : -1;
}

// The directory of the first port that has one: NCCL asks for a single one.
const char* path_of(RailDevices ports) noexcept {
  for (const Device* const port : ports) {
    if (!port->card_path.empty()) return port->card_path.c_str();
  }
  return nullptr;
}

}  // namespace

void note_init() noexcept { Runtime::instance().init_was_last().exchange(true); }

std::size_t device_count() noexcept {
  Runtime& runtime = Runtime::instance();
  const bool is_right_after_init = runtime.init_was_last().exchange(false);
  if (!runtime.has_devices()) return 0;
  const NetDevices& devices = *runtime.net_devices();
  return is_right_after_init ? devices.first_count() : devices.count();
}

// NCCL knows a wire by the GUID and the number of the port. A merged device has those of its first
// member, which NCCL does not use alone any longer.
Result<Properties> properties(int device) noexcept {
  Runtime& runtime = Runtime::instance();
  runtime.init_was_last().exchange(false);
  const NetDevice& found = *BL_TRY(runtime.net_device(device));
  const RailDevices ports = found.rails();
  const gdr::GpuDirect* const gpus = runtime.gpus();
  const gdr::Offer gpu = gpus == nullptr ? gdr::Offer() : gpus->offer(ports);
  return Properties{
      .name = found.name.c_str(),
      .pci_path = path_of(ports),
      .guid = ports.front()->guid,
      .speed_mbps = found.speed_mbps,
      .port = ports.front()->card_port,
      .rail = common_value(ports, &Device::rail),
      .plane = common_value(ports, &Device::plane),
      .members = found.merged,
      .takes_pointers = gpu.pointer,
      .takes_dmabufs = gpu.dmabuf,
      .force_flush = gpu.force_flush,
      .handles_are_global = !runtime.config().recovery,
  };
}

Result<int> merge(std::span<const int> devices) {
  Runtime& runtime = Runtime::instance();
  runtime.init_was_last().exchange(false);
  if (!runtime.has_devices()) return fail(Errc::kInvalid, "merge devices");
  if (const char* const why = why_not_merged(runtime.config()); why != nullptr) {
    // NCCL 2.24 to 2.26 ask for a device of each NIC that they merge with no other. Without a new
    // device they go on with the physical ones; an error would stop them.
    if (devices.size() == 1 && runtime.net_devices()->find(devices.front()) != nullptr) {
      return devices.front();
    }
    BL_INFO(kLogInit | kLogNet, "devices are not merged: %s", why);
    // Not kUnsupported, at which NCCL 2.24 and 2.25 stop.
    return fail(Errc::kInvalid, "merge devices");
  }
  NetDevices& known = *runtime.net_devices();
  const std::size_t before = known.count();
  const Outcome<const NetDevice*> merged = known.merge(devices);
  if (!merged) {
    BL_WARN("%s", merged.error().text.c_str());
    return fail(merged.error().code, "merge devices");
  }
  if (known.count() != before && devices.size() > 1) {
    BL_INFO(kLogInit | kLogNet, "merged into %s", describe(**merged).c_str());
  }
  return (*merged)->index;
}

}  // namespace beeline::net
