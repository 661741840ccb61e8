// SPDX-License-Identifier: Apache-2.0
//
// Caches the facts of the ports in use, and receives the asynchronous events of their devices.
//
// Reading a GID table can take hundreds of system calls. So a port is read at its first use, and
// again only after an event that says that it has changed.
// Threads: the control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/device/device_table.h"
#include "plugin/verbs/async_event.h"

namespace beeline {

// Receives the asynchronous events of all watched devices.
// Threads: the control thread makes the calls and waits for them, so they must be quick.
class PortEvents {
 public:
  virtual void on_device_event(const DeviceContext& context, const verbs::AsyncEvent& event) = 0;
  // A device that was gone is back and has been opened again. This is its new context.
  virtual void on_device_back(const DeviceContext& context) = 0;

 protected:
  ~PortEvents() = default;
};

// Where the control thread gets the facts of a port.
class PortSource {
 public:
  // Fails once the device is gone. The result is valid until the control thread's next event.
  virtual Result<const PortFacts*> facts(const Device& device) = 0;

 protected:
  ~PortSource() = default;
};

// How long to wait before a device that is gone is looked for. The context of each device that was
// opened stays open (decision 0026), so one that fails as soon as it is back is opened less and
// less often.
class ReopenDelays {
 public:
  static constexpr std::int64_t kFirstNs = 100 * kNsPerMs;
  static constexpr std::int64_t kLongestNs = 600 * kNsPerSec;
  static constexpr std::int64_t kBriefLifeNs = kNsPerSec;

  // The device has failed.
  std::int64_t after_failure(const std::string& ibdev, std::int64_t now_ns) {
    Last& last = last_[ibdev];
    const bool was_brief = last.opened_ns && now_ns - *last.opened_ns < kBriefLifeNs;
    last.delay_ns = was_brief ? std::min(2 * last.delay_ns, kLongestNs) : kFirstNs;
    return last.delay_ns;
  }
  void opened(const std::string& ibdev, std::int64_t now_ns) { last_[ibdev].opened_ns = now_ns; }

 private:
  struct Last {
    std::optional<std::int64_t> opened_ns;
    std::int64_t delay_ns = 0;  // after the last failure
  };
  std::map<std::string, Last> last_;
};

class PortWatch final : public PortSource {
 public:
  // Looks for devices that are gone since an earlier control thread ran.
  PortWatch(const DeviceTable& table, Poller& poller, PortEvents& events);
  PortWatch(const PortWatch&) = delete;
  PortWatch& operator=(const PortWatch&) = delete;
  ~PortWatch();

  // Starts to watch the device.
  Result<const PortFacts*> facts(const Device& device) override;

 private:
  void watch(DeviceContext& context);
  void read_events(DeviceContext& context);
  void handle(DeviceContext& context, const verbs::AsyncEvent& event);
  // After this time, looks for the device of a context that is gone, again and again until it is
  // back.
  void look_for(const DeviceContext& gone, std::int64_t delay_ns);
  // Returns when to look again; 0: it was found.
  std::int64_t find_again(const DeviceContext& gone, std::int64_t delay_ns);

  const DeviceTable* table_;
  Poller* poller_;
  PortEvents* events_;
  std::map<const Device*, PortFacts> facts_;
  std::map<DeviceContext*, Poller::Key> watched_;
  ReopenDelays delays_;
};

}  // namespace beeline
