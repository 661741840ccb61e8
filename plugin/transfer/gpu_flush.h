// SPDX-License-Identifier: Apache-2.0
//
// The receiver's flushes of GPU memory: data that a NIC has written to a GPU may still be on its
// way there when its completion is polled. The NICs that have written it read it back (flusher.h).
// If one cannot, the CUDA driver flushes. If the driver cannot either, the READ is done again when
// the NIC has a new queue pair, or is not needed any more: once the NIC has been out of use for
// some time, all that it has written is there.
//
// Threads: as the comm's data path, but for prepare().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "common/base/problem.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/flusher.h"
#include "plugin/transfer/line_table.h"
#include "plugin/transfer/memory_handle.h"

namespace beeline {

// Memory that a receive has filled, or will fill.
struct FlushTarget {
  const void* data = nullptr;
  const MemoryHandle* memory = nullptr;
};

// The buffers of one irecv that need a flush. `target_at(i)` gives the i-th of `count`, at most
// kMaxReceives; a target without memory needs none.
class FlushTargets {
 public:
  template <class TargetAt>
  FlushTargets(std::uint32_t count, TargetAt&& target_at) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const FlushTarget target = target_at(i);
      if (target.memory != nullptr && target.memory->flush.any) targets_[count_++] = target;
    }
  }
  std::span<const FlushTarget> all() const noexcept { return {targets_.data(), count_}; }

 private:
  std::array<FlushTarget, wire::kMaxReceives> targets_;
  std::size_t count_ = 0;
};

class GpuFlush {
 public:
  // The parts of the comm that it uses.
  struct Parts {
    Comm& comm;
    const LineTable& lines;
    Request* requests;  // by slot
  };
  static constexpr std::size_t kPlaceBytes = sizeof(std::uint64_t) * 2;
  // A port whose READs fail so often in a row, each time on a path that works, cannot flush.
  static constexpr std::uint8_t kMostFailures = 8;

  GpuFlush(const Parts& parts, const CommOptions& options) noexcept;

  // By the thread that registers memory: see RecvComm::prepare_flush(). READs put their bytes into
  // `place`, which is in the control memory.
  Result<std::uint8_t> prepare(const gdr::FlushNeed& need, std::uint8_t rails, void* place);
  bool is_prepared() const noexcept { return flusher_ != nullptr; }

  // In the next functions, `next` is the position of the next credit line.

  // Flushes data that has arrived. True: READs are under way, and the request waits for them.
  // False: `*code` says whether the data is visible.
  bool begin(Request& request, std::span<const FlushTarget> targets, std::uint32_t next,
             Errc* code);
  // The receive waits for a flush as well, which start_arrived() starts when its data is there.
  void begin_later(Request& receive, std::span<const FlushTarget> targets) noexcept;
  void start_arrived(std::uint32_t next);
  void on_completion(const Path& path, const ibv_wc& completion);
  // Called again and again while the comm is alarmed. Whether READs wait for a NIC.
  bool settle();

  // --- Repair ---

  // Posts the READs of a fence: see Comm::read_back().
  std::optional<std::uint8_t> read_back(const Path& path);
  bool needs_loopback(const Path& path);
  // Its device is gone. False: not now.
  bool leave_device_of(const Path& path);
  // See Comm::swap_resources(). `moves_rail`: the rail gets another device.
  bool swap(Path& path, PathResources& made, bool moves_rail);

 private:
  static constexpr std::uint8_t bit_of(const Path& path) noexcept {
    return static_cast<std::uint8_t>(1U << path.rail);
  }
  std::span<Path> paths() const noexcept { return comm_.paths(); }
  void plan(const Request& request, std::span<const FlushTarget> targets) noexcept;
  std::uint8_t narrow_plan(const Request& request, std::uint32_t next) noexcept;
  void start(Request& request);
  bool waits_only_for_room() const noexcept;
  // Whether all that the rail's device has written is visible, although nothing has read it back.
  bool is_settled(std::size_t rail) const noexcept;
  void leave_rail(std::size_t rail);
  void leave_lost_rails();
  bool drop_if_host_flushes();
  bool flush_by_host();
  void on_read_back(const Path& path, const ibv_wc& completion) noexcept;

  bool is_by_host(const Path& path) const noexcept {
    return (rails_flushed_by_host_ & bit_of(path)) != 0;
  }
  Outcome<Loopback> make_loopback(PathResources& resources) const;
  std::optional<Problem> prepare_path(Path& path, const gdr::FlushNeed& need);
  void report_unflushed(const Path& path, const Problem& problem, bool has_others);
  bool can_swap(const Path& path, const PathResources& made) const noexcept;
  bool use_device_of(const Path& path, PathResources& made);
  bool has_loopback_of_rail(const Path& path) const noexcept;

  Comm& comm_;
  const LineTable& lines_;
  Request* const requests_;
  const GidPolicy gid_;
  const PkeyChoice pkey_;
  std::mutex preparing_;                        // serializes prepare()
  std::uint8_t rails_flushed_by_host_ = 0;      // logged; a bit for each
  std::uint8_t unflushed_rails_ = 0;            // the same
  bool says_by_host_ = false;                   // logged that the driver flushes
  std::atomic<std::uint64_t> flushed_gpus_{0};  // FlushNeed::owner of all prepared memory
  std::unique_ptr<Flusher> flusher_;            // made by prepare()
};

}  // namespace beeline
