// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of a comm. Each irecv grants its buffers by writing credit lines into the
// sender's ring; the sender's writes announce themselves in our completion queue.
//
// No line is granted before a receive is posted for its notice: a sender that found none would be
// turned away by the device, which looks like a dead path.
//
// Threads: as Comm. Cost of an irecv: one credit write for all its buffers; receives are posted in
// batches ahead of need, from work requests that stand ready.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "common/base/hot.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/flusher.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"

namespace beeline {

struct ReceiveBuffer {
  void* data = nullptr;
  std::size_t capacity = 0;
  int tag = 0;
  const MemoryHandle* memory = nullptr;
};

enum class Need : std::uint8_t {
  kArrival,  // test() is done when all has arrived
  kNothing,  // it will see for itself, in the data: test() is done at once
};

// Memory that a receive has filled, or will.
struct FlushTarget {
  const void* data = nullptr;
  const MemoryHandle* memory = nullptr;
};

// Those of one irecv that need a flush. `target_at(i)` gives the i-th of `count`, at most
// kMaxReceives; one without memory needs none.
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

class RecvComm final : public Comm {
 public:
  static CommPlan plan() noexcept;

  RecvComm(std::unique_ptr<Connection> connection, const CommOptions& options,
           StatsSlot stats) noexcept;
  // Tells the peer how far this end has come. No other call may follow, and the object may be
  // destroyed by another thread.
  void close() noexcept;

  // `buffer_at(i)` gives a ReceiveBuffer for i < `count`, at most kMaxReceives. `*request`, null
  // before, stays so while too much is under way: call again. kInvalid: a buffer without memory, or
  // beyond kMaxMessageBytes; then nothing has begun.
  // `Count` is a number, or a constant: most receives have one buffer.
  template <class Count, class BufferAt>
  Errc irecv(Count count, BufferAt&& buffer_at, Need need, void** request);

  // --- GPU memory: flush.cc ---

  // Before memory that needs flushes is received into. Takes a millisecond the first time.
  // Threads: that of registrations.
  Status prepare_flush(const gdr::FlushNeed& need);
  // Makes what has arrived in these buffers visible to their GPU. `*request`, null before, stays
  // so when that is done at once.
  Errc iflush(std::span<const FlushTarget> targets, void** request);
  // Where NCCL will not call iflush: the request is done when that is done, too.
  bool flushes_in_test() const noexcept { return flushes_in_test_.load(std::memory_order_acquire); }
  void flush_before_done(void* request, std::span<const FlushTarget> targets);

 private:
  // Whom a line in flight belongs to. Written as one word.
  struct alignas(8) Owner {
    std::uint8_t request;
    std::uint8_t index;
    bool waits;   // its message has not arrived
    bool orphan;  // its request does not wait for it
    std::uint32_t position;
  };
  static_assert(sizeof(Owner) == 8 && offsetof(Owner, index) == 1 && offsetof(Owner, waits) == 2 &&
                offsetof(Owner, orphan) == 3 && offsetof(Owner, position) == 4);
  static constexpr std::uint64_t kNextOwner = (std::uint64_t{1} << 32) + (std::uint64_t{1} << 8);

  static constexpr std::uint32_t kBatch = 32;  // receives posted at a time
  // All lines in flight, what is left of a batch, and the next.
  static constexpr std::uint32_t kReceiveDepth = std::uint32_t{wire::kMaxLines} + 2 * kBatch;
  static_assert(kReceiveDepth % kBatch == 0);  // no batch wraps

  // Receives use the requests below this slot, flushes the others: iflush has no word for "call
  // again", so what receives take must not be missing there. All come back to the same list.
  static constexpr std::uint16_t kFirstForFlushes = wire::kMaxGroups;
  static constexpr std::size_t kRequests = 2 * wire::kMaxGroups;

  // Where in the comm's memory the notices are, and where flushing READs read to.
  static constexpr std::size_t kNoticesAt = wire::kCreditRingBytes;
  static constexpr std::size_t kFlushPlace = kNoticesAt + kReceiveDepth * sizeof(wire::Notice);

  static bool is_valid(const ReceiveBuffer& buffer) noexcept {
    return buffer.memory != nullptr && buffer.capacity <= wire::kMaxMessageBytes;
  }
  // A free request, and places in the send queue. make_room() looks for what has come back.
  bool has_room() noexcept;
  BL_APART bool make_room();
  void build_receives() noexcept;
  Status post_receives();
  Errc post_receives_for(std::uint32_t lines);
  void build_grant() noexcept;
  template <class Count, class BufferAt>
  std::uint32_t write_lines(Count count, BufferAt& buffer_at, Need need,
                            wire::Rails rails) noexcept;
  BL_APART Errc take_back(std::uint32_t written);
  Errc grant(std::uint32_t first, std::uint32_t count);
  BL_APART Errc grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head);
  Errc post_grant(std::uint32_t first, std::uint32_t count);
  void absorb(const ibv_wc* completions, int found) override;
  void absorb_one(const ibv_wc& completion) override;
  BL_APART void on_other(const ibv_wc& completion);
  void on_write(const ibv_wc& completion) noexcept;
  BL_INLINED bool on_immediate(const ibv_wc& completion) noexcept;
  void on_notice(const ibv_wc& completion);
  BL_INLINED void arrived(Owner& owner, std::uint32_t size) noexcept;
  Status settle(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status ask_path() override;
  std::uint32_t settled() noexcept;

  BL_APART void set_flushes_apart() noexcept;
  BL_APART void on_flush(const ibv_wc& completion);
  BL_APART void flush_arrived();
  static void plan_reads(Flusher::Plan& plan, std::uint16_t request,
                         std::span<const FlushTarget> targets) noexcept;
  void start_reads(Request& request, const Flusher::Plan& plan);
  void leave_it_to_host(const char* why);
  Errc flush_by_host(const char* why);

  wire::CreditLine* lines_;           // the sender's ring as we fill it
  const wire::Notice* notices_;       // by place in the receive queue
  std::uint32_t next_ = 0;            // position of the next line
  std::uint32_t spare_receives_ = 0;  // posted, and not promised to a line
  std::uint32_t next_notice_ = 0;     // place of the next receive to post
  std::uint32_t silent_ = 0;          // grants posted since the last signalled one
  bool asking_ = false;               // a question to the path is under way
  // Prebuilt: only what changes is written.
  ibv_sge grant_sge_{};
  ibv_send_wr grant_wr_{};
  std::array<ibv_sge, kBatch> receive_sges_{};
  std::array<ibv_recv_wr, kBatch> receive_wrs_{};
  std::array<Owner, wire::kMaxLines> owners_{};
  RequestPool<kRequests> requests_;
  FreeRequests free_flushes_;

  const gdr::GpuDirect* gpus_;
  GidPolicy gid_;
  int pkey_index_;
  std::mutex preparing_;
  std::atomic<bool> flushes_in_test_{false};
  std::atomic<std::uint64_t> flushed_gpus_{0};  // FlushNeed::owner of all that was prepared
  std::unique_ptr<Flusher> flusher_;            // made by prepare_flush()
  bool host_serves_ = false;  // the driver has flushed in place of a NIC that cannot
};

}  // namespace beeline

#include "plugin/transfer/recv_grant.h"
