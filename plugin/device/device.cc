// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/device.h"

#include "plugin/verbs/create.h"

namespace beeline {

const char* to_string(Transport transport) noexcept {
  switch (transport) {
    case Transport::kInfiniBand: return "InfiniBand";
    case Transport::kRoce: return "RoCE";
    case Transport::kIwarp: return "iWARP";
  }
  return "unknown";
}

Result<ibv_pd*> DeviceContext::pd() {
  const std::lock_guard lock(mutex_);
  if (!pd_) pd_ = BL_TRY(verbs::alloc_pd(api(), raw()));
  return pd_.get();
}

const Device& Device::newest() const noexcept {
  const Device* device = this;
  while (const Device* next = device->successor->load(std::memory_order_acquire)) device = next;
  return *device;
}

std::string port_name(const Device& device) {
  return device.ibdev + ":" + std::to_string(device.port);
}

std::string label(const Device& device) {
  return device.ibdev + " port " + std::to_string(device.port);
}

}  // namespace beeline
