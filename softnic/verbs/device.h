// SPDX-License-Identifier: Apache-2.0
// An entry of the list that ibv_get_device_list returns.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "softnic/nic/runtime.h"

namespace softnic {

struct Device : ibv_device {
  // `the_removals` as for Context: an entry from before a removal cannot be opened afterwards.
  Device(std::shared_ptr<Runtime> the_runtime, std::uint32_t the_index, std::uint32_t the_removals);

  static Device& of(ibv_device* device) noexcept { return *static_cast<Device*>(device); }
  DeviceRecord& record() const noexcept { return runtime->header().devices[index]; }

  // Device lists and open contexts hold references. The last one deletes the object.
  void add_reference() noexcept { references_.fetch_add(1); }
  void drop_reference() noexcept {
    if (references_.fetch_sub(1) == 1) delete this;
  }

  // Provider libraries (libmlx5) read their own fields behind an ibv_device to see whether the
  // device is theirs. They find zeros.
  const std::array<std::byte, 512> provider_padding{};
  const std::shared_ptr<Runtime> runtime;
  const std::uint32_t index;  // into FabricHeader::devices
  const std::uint32_t removals_at_open;

 private:
  std::atomic<int> references_{1};
};

}  // namespace softnic
