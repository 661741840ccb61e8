// SPDX-License-Identifier: Apache-2.0
// This process as a member of a fabric: its seat (fabric/layout.h), its arena, and the objects in
// it. A process has at most one. The device list and every open context share it; when the last of
// them is released, the process leaves the fabric.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/problem.h"
#include "softnic/fabric/arena.h"
#include "softnic/fabric/fabric.h"
#include "softnic/nic/allocators.h"
#include "softnic/nic/engine.h"
#include "softnic/nic/gpu_mirrors.h"
#include "softnic/nic/object_list.h"
#include "softnic/nic/peer.h"

namespace softnic {

class Cq;
class Qp;
class Srq;

class Runtime {
 public:
  // Returns the runtime of the process. The first call joins the fabric that SOFTNIC_FABRIC and
  // SOFTNIC_HOST name. If that fails, errno is set as well; ENOENT: there is no such fabric.
  static beeline::Outcome<std::shared_ptr<Runtime>> get();
  // Returns it, or null if the process is in no fabric.
  static std::shared_ptr<Runtime> find();

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Fabric& fabric() noexcept { return fabric_; }
  FabricHeader& header() noexcept { return fabric_.header(); }
  const HostRecord& host() noexcept { return header().hosts[host_]; }
  std::string sysfs_root() const;
  const Arena& arena() const noexcept { return arena_; }
  std::uint32_t slot() const noexcept { return slot_; }
  std::uint32_t seat() const noexcept { return seat_word(slot_, epoch_); }
  void take(RobustLock& lock) noexcept {
    lock.lock(seat(), [this](std::uint32_t holder) { return fabric_.is_seat_alive(holder); });
  }
  Engine& engine() noexcept { return engine_; }
  GpuMirrors& mirrors() noexcept { return mirrors_; }

  IndexAllocator& qp_indices() noexcept { return qp_indices_; }
  IndexAllocator& cq_indices() noexcept { return cq_indices_; }
  IndexAllocator& mr_indices() noexcept { return mr_indices_; }
  IndexAllocator& srq_indices() noexcept { return srq_indices_; }

  // Allocates the pages of a record. Returns false if /dev/shm is full; without this call, the
  // first access would then end the process by SIGBUS.
  template <class Record>
  bool allocate_pages_of(const Record& record) noexcept {
    return allocate_pages(reinterpret_cast<const std::byte*>(&record), sizeof record);
  }
  std::optional<std::uint64_t> take_ring(std::uint64_t bytes);
  void give_back_ring(std::uint64_t offset, std::uint64_t bytes) {
    rings_.give_back(offset, bytes);
  }

  std::uint64_t next_serial() noexcept { return serials_.fetch_add(1, std::memory_order_relaxed); }

  // The process in a slot, or null if the slot is empty. Cached as long as the slot has the same
  // owner.
  std::shared_ptr<Peer> peer(std::uint32_t slot);

  // The QP with an index, while it exists. Readers hold the poll lock of one of its CQs, or own it.
  void list_qp(std::uint32_t index, Qp* qp) noexcept {
    qps_[index].store(qp, std::memory_order_release);
  }
  Qp* qp_at(std::uint32_t index) const noexcept {
    return qps_[index].load(std::memory_order_acquire);
  }

  // For fences and flushes, and to find the object of an event.
  ObjectList<Qp>& qps() noexcept { return qp_list_; }
  ObjectList<Cq>& cqs() noexcept { return cq_list_; }
  ObjectList<Srq>& srqs() noexcept { return srq_list_; }
  // Regions with the hazard `hide`.
  ObjectList<MrRecord>& hiding_regions() noexcept { return hiding_regions_; }

  // Flushes QPs that a peer has moved to ERR since the last call. Cheap if there are none.
  void flush_broken_qps();

  // False in a forked child, which can read the objects that it inherited but is not in the fabric.
  bool is_ours() const noexcept;
  double clock_scale() const noexcept { return clock_scale_; }

 private:
  struct Seat {
    std::uint32_t slot;
    std::uint64_t epoch;
    beeline::UniqueFd lock;
    beeline::UniqueFd file;
    Mapping arena;
  };
  static beeline::Outcome<std::shared_ptr<Runtime>> join(const char* fabric_name,
                                                         const char* host_name);
  static beeline::Outcome<Seat> take_seat(const Fabric& fabric, std::uint32_t host);

  Runtime(Fabric fabric, std::uint32_t host, Seat&& seat);
  static void before_fork();
  static void after_fork();
  static void after_fork_in_child();
  void detach_in_child() noexcept;
  bool allocate_pages(const std::byte* start, std::uint64_t bytes) noexcept;

  const pid_t pid_;
  Fabric fabric_;
  const std::uint32_t host_;
  const std::uint32_t slot_;
  const std::uint64_t epoch_;
  beeline::UniqueFd seat_lock_;
  beeline::UniqueFd arena_file_;
  Mapping mapping_;
  Arena arena_;
  const double clock_scale_;

  IndexAllocator qp_indices_;
  IndexAllocator cq_indices_;
  IndexAllocator mr_indices_;
  IndexAllocator srq_indices_;
  RingAllocator rings_{kRingBytes};
  std::atomic<std::uint64_t> serials_;  // differ from those of earlier owners of the slot

  std::mutex peers_mutex_;
  std::array<std::shared_ptr<Peer>, kMaxSlots> peers_;

  std::array<std::atomic<Qp*>, kMaxQps> qps_{};
  std::atomic<std::uint32_t> seen_break_count_{0};
  ObjectList<Qp> qp_list_;
  ObjectList<Cq> cq_list_;
  ObjectList<Srq> srq_list_;
  ObjectList<MrRecord> hiding_regions_;

  // These are last, so that their threads end before other members are destroyed.
  GpuMirrors mirrors_{*this};
  Engine engine_;
};

}  // namespace softnic
