// SPDX-License-Identifier: Apache-2.0
//
// The object of the process that owns everything else.
//
// Lifecycle: created by the first caller and never destroyed, because at exit NCCL's threads may
// still be inside it. init() fills it once. Before that, and on a host where no device can be used,
// it has no device. Threads: any. The members that init() sets are const afterwards.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/base/result.h"
#include "plugin/config/config.h"
#include "plugin/connect/control/control_plane.h"
#include "plugin/device/device_table.h"
#include "plugin/device/net_devices.h"
#include "plugin/device/standby_devices.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/runtime/rail_traffic.h"
#include "plugin/runtime/thread_flag.h"
#include "plugin/stats/stats_page.h"
#include "plugin/transfer/registered_buffers.h"

namespace beeline {

class Runtime final : MrCaches, CommSlots {
 public:
  static Runtime& instance();

  // The first call finds the devices of the host. Later calls set the logger, and test GPUs that
  // came into use. Never fails: if no device can be used, the log says why.
  void init(LogSink sink);

  // Called when the process exits. It destroys nothing, because other threads may still be inside.
  void on_exit() noexcept;

  // Whether the calling thread has asked nothing about devices since it called init: the next
  // `devices` is then the one where NCCL wants to know the number of physical devices.
  ThreadFlag& init_was_last() noexcept { return init_was_last_; }

  // False in a forked child. The child must not free the objects that it inherited, because they
  // are the parent's.
  bool is_ours() const noexcept;

  // The devices that NCCL sees; null if there is none.
  NetDevices* net_devices() const noexcept { return net_devices_.get(); }
  bool has_devices() const noexcept { return net_devices_ != nullptr; }
  // kInvalid if NCCL has no device of that number.
  Result<const NetDevice*> net_device(int index) const noexcept;

  // The following may be called only if there are devices.
  const Config& config() const noexcept { return config_; }
  ControlPlane& control() noexcept { return *control_; }
  // Every comm registers its buffers with these.
  const RegistrationMeans& registration() const noexcept { return registration_; }
  // Null: no device stands in for another.
  const StandbyDevices* standbys() const noexcept { return standbys_.get(); }
  const gdr::GpuDirect* gpus() const noexcept { return gpus_.get(); }
  // Whether the user has told NCCL never to unload the plugin (NCCL_NET_PLUGIN_REF_COUNT=1).
  bool nccl_keeps_plugin() const noexcept { return nccl_keeps_plugin_; }
  // --- CommSlots. A forked child gets none: the page is its parent's ---
  StatsSlot acquire(SlotRole role, RailDevices devices) noexcept override;
  void set_identity(std::uint64_t identity) noexcept override;
  void set_alive(std::int64_t now_ns) noexcept override;
  RailTraffic& rail_traffic() noexcept { return rail_traffic_; }

 private:
  Runtime() = default;

  // --- MrCaches ---
  Result<MrCache*> cache(const Device& device) override;

  void init_host();
  bool find_devices();
  bool can_use_iwarp();
  void read_topology() noexcept;
  std::string check_placement() const noexcept;
  void probe_gpus() noexcept;
  const topology::Graph* known_topology() const;
  Result<MrCache*> cache_locked(const Device& device);
  void start_services();
  void check_host_of(const Environ& environ) const noexcept;
  void log_devices() const;
  void log_merged_devices() const;
  void log_unused_gid_index() const;

  ThreadFlag init_was_last_;
  std::mutex mutex_;
  bool ready_ = false;
  int pid_ = 0;
  Config config_;
  bool nccl_keeps_plugin_ = false;
  bool has_topology_file_ = false;  // NCCL_TOPO_FILE is set
  std::optional<verbs::Loaded> verbs_;
  std::optional<verbs::CmLibrary> cm_library_;
  std::unique_ptr<DeviceTable> table_;
  std::unique_ptr<NetDevices> net_devices_;
  std::unique_ptr<StandbyDevices> standbys_;
  std::unique_ptr<StatsPage> stats_;
  RailTraffic rail_traffic_;
  std::unique_ptr<ControlPlane> control_;
  std::vector<std::unique_ptr<MrCache>> caches_;  // by DeviceContext::index()
  std::optional<topology::Graph> machine_;
  std::unique_ptr<gdr::GpuDirect> gpus_;
  LeftOutRails left_out_rails_;
  RegistrationMeans registration_;
};

}  // namespace beeline
