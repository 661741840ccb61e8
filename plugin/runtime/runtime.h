// SPDX-License-Identifier: Apache-2.0
//
// The one object of the process that owns everything else.
//
// Lifecycle: made by the first caller and never destroyed: at exit, NCCL's threads may still be
// inside it. init() fills it once; until then, and on a host where nothing can be used, it has no
// device.
// Threads: any. What init() sets is const afterwards.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/base/result.h"
#include "plugin/config/config.h"
#include "plugin/connect/control/control_plane.h"
#include "plugin/device/device_table.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/stats/stats_page.h"

namespace beeline {

class Runtime {
 public:
  static Runtime& instance();

  // The first call looks at the host; later ones take the logger, and look at GPUs that came into
  // use. Never fails: what is missing is logged, and leaves no device.
  void init(LogSink sink);

  // The process is about to exit. Nothing is torn down: other threads may still be inside.
  void on_exit() noexcept;

  // False in a forked child: what it inherited belongs to its parent, and freeing it there would
  // take it from the parent.
  bool is_ours() const noexcept;

  std::span<const Device> devices() const noexcept;
  // Out of range is the caller's error.
  Result<const Device*> device(int index) const noexcept;

  // Only with devices.
  const Config& config() const noexcept { return config_; }
  ControlPlane& control() noexcept { return *control_; }
  Result<MrCache*> cache(const Device& device);
  const gdr::GpuDirect* gpus() const noexcept { return gpus_.get(); }
  // NCCL was told to keep the plugin for good.
  bool nccl_keeps_plugin() const noexcept { return nccl_keeps_plugin_; }
  StatsPage& stats() noexcept { return *stats_; }

 private:
  Runtime() = default;

  void look_at_host();
  bool find_devices();
  bool can_use_iwarp();
  void look_at_machine() noexcept;
  std::string look_at_placement() const noexcept;
  void look_at_gpus() noexcept;
  const topology::Graph* machine_as_nccl_sees_it() const;
  Result<MrCache*> cache_locked(const Device& device);
  void start_services();
  void log_devices() const;
  void log_unused_gid_index() const;

  std::mutex mutex_;
  bool ready_ = false;
  int pid_ = 0;
  Config config_;
  bool nccl_keeps_plugin_ = false;
  bool nccl_has_own_view_ = false;  // of how devices hang together
  std::optional<verbs::Loaded> verbs_;
  std::optional<verbs::CmLibrary> cm_library_;
  std::unique_ptr<DeviceTable> table_;
  std::unique_ptr<StatsPage> stats_;
  std::unique_ptr<ControlPlane> control_;
  std::vector<std::unique_ptr<MrCache>> caches_;  // by DeviceContext::index()
  std::optional<topology::Graph> machine_;
  std::unique_ptr<gdr::GpuDirect> gpus_;
};

}  // namespace beeline
