// SPDX-License-Identifier: Apache-2.0
// Layout of the file arena.SLOT, which holds the queue pairs, completion queues and memory regions
// of one process. Only that process allocates in it. Peers map it and do the work of the remote
// NIC: they read QPs and keys, take receive work requests and push completions.
//
// Each field says who may write it. "owner" is the process of the arena; "peer" is the requester of
// the connected queue pair, in whatever process it runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softnic/fabric/layout.h"
#include "softnic/fabric/robust_lock.h"
#include "softnic/fabric/shared.h"

namespace softnic {

inline constexpr std::uint32_t kMaxQps = 1u << 15;  // 15 bits of a QPN, 9 for the slot
inline constexpr std::uint32_t kMaxMrs = 1u << 15;  // 15 bits of a key, 9 for the slot, 8 for reuse
inline constexpr std::uint32_t kMaxCqs = 1u << 14;
inline constexpr std::uint32_t kMaxSrqs = 1u << 10;
inline constexpr std::size_t kRingBytes = std::size_t{2} << 30;  // sparse: pages exist once touched

// A QPN or key contains the slot of its process, so its record is found without a lookup table.
constexpr std::uint32_t make_qpn(std::uint32_t slot, std::uint32_t index) {
  return index * kMaxSlots | slot;
}
constexpr std::uint32_t qpn_slot(std::uint32_t qpn) { return qpn % kMaxSlots; }
constexpr std::uint32_t qpn_index(std::uint32_t qpn) { return (qpn / kMaxSlots) % kMaxQps; }
constexpr std::uint32_t make_key(std::uint32_t slot, std::uint32_t index, std::uint8_t reuse) {
  return (index * kMaxSlots | slot) << 8 | reuse;
}
constexpr std::uint32_t key_slot(std::uint32_t key) { return (key >> 8) % kMaxSlots; }
constexpr std::uint32_t key_index(std::uint32_t key) { return (key >> 8) / kMaxSlots; }

// The owner writes everything: `key` last when it registers and first when it deregisters.
struct MrRecord {
  Shared<std::uint32_t> key;  // 0: no region here
  std::uint32_t pd;
  std::uint32_t access;  // ibv_access_flags
  std::uint64_t iova;    // the address that work requests use for the first byte
  std::uint64_t length;
  std::uint64_t base;  // the address of that byte in the owner
  // Not 0: writes go to `staging` first and are listed as DeferredRanges (nic/deferred_writes.h).
  std::uint32_t defers_writes;
  // Not 0: the number of the region's GpuMirror. Only the owner can then move listed bytes to their
  // place, and must copy from the GPU before a read (nic/gpu_mirrors.h).
  std::uint32_t mirror;
  std::uint64_t staging;
  std::uint64_t deferred_offset;  // of the list, in the ring space
  RobustLock deferred_lock;
  Shared<std::uint32_t> deferred_count;
};

// A part of a region whose new bytes are still in its staging memory (nic/deferred_writes.h).
struct DeferredRange {
  std::uint64_t offset;
  std::uint64_t length;
};
inline constexpr std::uint32_t kMaxDeferred = 1024;

// kShared: a receive of a shared receive queue. Its `sequence` is the slot in that queue.
enum class CqeKind : std::uint32_t { kSend, kReceive, kShared };

struct CqeRecord {
  std::uint64_t wr_id;
  std::uint64_t sequence;  // the number of the completed work request in its queue, from 0
  CqeKind kind;
  std::uint32_t qp_index;
  std::uint32_t status;
  std::uint32_t vendor_err;
  std::uint32_t opcode;
  std::uint32_t byte_len;
  std::uint32_t imm_data;  // network order
  std::uint32_t qp_num;
  std::uint32_t wc_flags;
  std::uint32_t solicited;
  std::uint64_t visible_at;  // monotonic ns from which polling returns it; 0: at once
};

// Which completion causes an event on the completion channel. kNotifying: a process is writing the
// event, or died while it did.
enum Armed : std::uint32_t { kNotArmed, kArmedForSolicited, kArmedForAny, kNotifying };
// The word also counts its changes, so that two calls to ibv_req_notify_cq can be told apart.
constexpr std::uint32_t armed_state(std::uint32_t word) { return word & 0xff; }
constexpr std::uint32_t armed_next(std::uint32_t word, std::uint32_t state) {
  return ((word & ~std::uint32_t{0xff}) + 0x100) | state;
}

struct CqRecord {
  RobustLock push_lock;
  Shared<std::uint64_t> tail;     // holder of the lock: publishes an entry
  Shared<std::uint64_t> head;     // owner: frees entries
  Shared<std::uint32_t> overrun;  // pusher: an entry was lost and the CQ is unusable
  std::uint32_t capacity;         // owner, at creation
  std::uint32_t ring_entries;     // a power of two, at least capacity
  std::uint64_t ring_offset;
  std::uint32_t event_number;  // the event pipe of the owner's context, and its device
  std::uint32_t device;
  std::uint64_t serial;
  std::uint32_t channel;                 // number of its event pipe, plus one; 0: none
  Shared<std::uint32_t> armed;           // owner arms; the process that notifies disarms
  Shared<std::uint64_t> visible_before;  // earlier entries are visible whatever their visible_at
};

struct SgeRecord {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

struct ReceiveRecord {  // followed by sge_count SgeRecords
  std::uint64_t wr_id;
  std::uint32_t sge_count;
  std::uint32_t reserved;
};

// A slot of a shared receive queue, followed by its SgeRecords. The FIFO holds the numbers of the
// posted slots, in order.
struct SharedReceive {
  Shared<std::uint32_t> holder;  // kSlotPosted, kSlotFree, or the QPN whose message it receives
  std::uint32_t reserved;
  ReceiveRecord receive;
};
// A bit of an SRQ's limit: a process is sending the limit event, or died while it did.
inline constexpr std::uint32_t kLimitNotifying = 1u << 31;
inline constexpr std::uint32_t kSlotPosted = 0;
inline constexpr std::uint32_t kSlotFree = ~0u;

// To take a receive, a process locks take_lock, sets the slot's holder, and then increments
// `taken`. If it dies between the two, the slot at the head of the FIFO already has a holder, and
// the next process skips it.
struct SrqRecord {
  RobustLock take_lock;
  Shared<std::uint64_t> posted;  // owner
  Shared<std::uint64_t> taken;   // holder of the lock
  Shared<std::uint32_t> limit;  // owner arms; the process that goes below it notifies and clears it
  std::uint32_t pd;
  std::uint32_t depth;
  std::uint32_t stride;  // of a slot
  std::uint64_t slots_offset;
  std::uint64_t fifo_offset;
  std::uint32_t event_number;
  std::uint32_t device;
  std::uint64_t serial;
};

// The state word also counts the moves into RESET. A peer that reads the same word before and after
// other fields knows that these fields belong together.
constexpr std::uint64_t state_word(std::uint64_t resets, std::uint32_t state) {
  return resets << 8 | state;
}
constexpr std::uint32_t state_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word & 0xff);
}

struct alignas(64) QpRecord {
  Shared<std::uint64_t> state;  // owner; a peer may move RTR, RTS or SQD to ERR
  Shared<std::uint32_t> dest_qpn;
  // The owner writes these while `state` and `dest_qpn` keep all peers out.
  std::uint32_t pd;
  std::uint32_t device;
  std::uint32_t port;  // index, not number
  std::uint32_t recv_cq;
  std::uint32_t srq;       // 0: none
  std::uint32_t path_mtu;  // bytes
  std::uint32_t rq_psn;
  std::uint32_t max_dest_rd_atomic;
  std::uint32_t event_number;
  std::uint64_t serial;
  std::uint64_t dest_gid_high;  // the address to which responses go
  std::uint64_t dest_gid_low;
  std::uint32_t dest_lid;
  std::uint32_t dest_is_global;
  std::uint64_t receive_offset;  // ring of receive_depth entries of receive_stride bytes
  std::uint32_t receive_depth;
  std::uint32_t receive_stride;
  Shared<std::uint32_t> removals;         // owner: DeviceRecord::removals when the QP was set up
  Shared<std::uint32_t> access;           // owner, may change while connected
  Shared<std::uint32_t> min_rnr_timer;    // owner, likewise
  Shared<std::uint64_t> receives_posted;  // owner
  Shared<std::uint64_t> receives_taken;   // peer
  Shared<std::uint32_t> shared_receive;   // peer: slot of the message that is arriving, plus one
  Shared<std::uint32_t> breaking;  // peer: is about to move the state to ERR; owner clears it
  Shared<std::uint64_t> bound_to;  // peer: the first connection to arrive; owner clears it

  // Owner's requester: odd while it accesses a peer's arena or memory (nic/fence.h). It is written
  // twice for each message and so has a cache line of its own.
  alignas(64) Shared<std::uint32_t> busy;
};

struct ArenaHeader {
  std::uint64_t epoch;  // of the process to which this file belongs (SlotRecord::epoch)
  // A peer increments it before it moves a QP to ERR, so that the owner flushes that QP.
  Shared<std::uint32_t> break_count;
  RobustLock atomic_lock;  // held during an atomic operation on this process's memory
};

struct ArenaLayout {
  ArenaHeader header;
  QpRecord qps[kMaxQps];
  CqRecord cqs[kMaxCqs];
  MrRecord mrs[kMaxMrs];
  SrqRecord srqs[kMaxSrqs];
};

inline constexpr std::size_t kRingsOffset = (sizeof(ArenaLayout) + 4095) & ~std::size_t{4095};
inline constexpr std::size_t kArenaBytes = kRingsOffset + kRingBytes;

// A view of a mapped arena.
class Arena {
 public:
  Arena() noexcept = default;
  explicit Arena(std::byte* base) noexcept : base_(base) {}

  ArenaHeader& header() const noexcept { return layout().header; }
  QpRecord& qp(std::uint32_t index) const noexcept { return layout().qps[index]; }
  CqRecord& cq(std::uint32_t index) const noexcept { return layout().cqs[index]; }
  MrRecord& mr(std::uint32_t index) const noexcept { return layout().mrs[index]; }
  SrqRecord& srq(std::uint32_t index) const noexcept { return layout().srqs[index]; }

  CqeRecord& cqe(const CqRecord& cq, std::uint64_t position) const noexcept {
    auto* ring = reinterpret_cast<CqeRecord*>(base_ + kRingsOffset + cq.ring_offset);
    return ring[position & (cq.ring_entries - 1)];
  }
  ReceiveRecord& receive(const QpRecord& qp, std::uint64_t position) const noexcept {
    const std::uint64_t entry = position % qp.receive_depth;
    return *reinterpret_cast<ReceiveRecord*>(base_ + kRingsOffset + qp.receive_offset +
                                             entry * qp.receive_stride);
  }
  SharedReceive& slot(const SrqRecord& srq, std::uint32_t number) const noexcept {
    return *reinterpret_cast<SharedReceive*>(base_ + kRingsOffset + srq.slots_offset +
                                             std::uint64_t{number} * srq.stride);
  }
  Shared<std::uint32_t>& fifo(const SrqRecord& srq, std::uint64_t position) const noexcept {
    auto* numbers =
        reinterpret_cast<Shared<std::uint32_t>*>(base_ + kRingsOffset + srq.fifo_offset);
    return numbers[position % srq.depth];
  }
  DeferredRange& deferred(const MrRecord& region, std::uint32_t number) const noexcept {
    return reinterpret_cast<DeferredRange*>(base_ + kRingsOffset + region.deferred_offset)[number];
  }
  static SgeRecord* sges(ReceiveRecord& receive) noexcept {
    return reinterpret_cast<SgeRecord*>(&receive + 1);
  }

 private:
  ArenaLayout& layout() const noexcept { return *reinterpret_cast<ArenaLayout*>(base_); }
  std::byte* base_ = nullptr;
};

}  // namespace softnic
