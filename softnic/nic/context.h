// SPDX-License-Identifier: Apache-2.0
// An open device, and its protection domains.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/fd.h"
#include "softnic/fabric/events.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// Programs have a pointer to verbs_context::context; the inline functions of verbs.h find the rest
// by its offset.
struct Context : verbs_context {
  // `the_removals` is DeviceRecord::removals at the time when the device was found to be present.
  Context(std::shared_ptr<Runtime> the_runtime, std::uint32_t the_device,
          std::uint32_t the_removals, EventPipe the_pipe, beeline::UniqueFd the_events) noexcept;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  static Context& of(ibv_context* context) noexcept {
    return *static_cast<Context*>(reinterpret_cast<verbs_context*>(
        reinterpret_cast<char*>(context) - offsetof(verbs_context, context)));
  }

  DeviceRecord& record() const noexcept { return runtime->header().devices[device]; }
  PortRecord& port(std::uint32_t number) const noexcept { return record().ports[number - 1]; }
  bool has_port(std::uint32_t number) const noexcept {
    return number >= 1 && number <= record().port_count;
  }

  // Whether the device was removed after this context was opened. It stays true when the device
  // comes back: all calls fail with EIO, except those that destroy and close.
  bool is_dead() const noexcept { return record().removals.load() != removals_at_open; }

  const std::shared_ptr<Runtime> runtime;
  const std::uint32_t device;  // index into FabricHeader::devices
  const std::uint32_t removals_at_open;
  const EventPipe pipe;
  const beeline::UniqueFd events;
  std::atomic<std::uint32_t> objects{0};      // protection domains and CQs
  std::atomic<bool> removal_reported{false};  // the program has got the event of the removal
};

struct Pd : ibv_pd {
  explicit Pd(Context& the_owner) noexcept;
  ~Pd();
  Pd(const Pd&) = delete;
  Pd& operator=(const Pd&) = delete;
  static Pd& of(ibv_pd* pd) noexcept { return *static_cast<Pd*>(pd); }

  Context& owner;
  const std::uint32_t number;  // unique in the process
  std::atomic<std::uint32_t> children{0};
};

}  // namespace softnic
