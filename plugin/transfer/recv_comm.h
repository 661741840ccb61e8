// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of a comm. Each irecv grants its buffers by writing credit lines into the
// sender's ring. The sender's writes produce completions here.
//
// No line is granted before a receive is posted for its message. The device refuses a message that
// finds no posted receive, which looks like a broken path.
//
// Threads: as Comm. Cost of an irecv: one RDMA write of credit lines for all its buffers. Receives
// are posted ahead, in batches.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "common/base/hot.h"
#include "common/base/problem.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/flusher.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"
#include "plugin/wire/reports.h"

namespace beeline {

struct GrantedLine;  // path_reports.h

struct ReceiveBuffer {
  void* data = nullptr;
  std::size_t capacity = 0;
  int tag = 0;
  const MemoryHandle* memory = nullptr;
};

enum class Need : std::uint8_t {
  kArrival,  // the request is done when all data has arrived
  kNothing,  // NCCL sees the arrival in the data itself: the request is done at once
};

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

class RecvComm : public Comm {
 public:
  static constexpr Role kRole = Role::kReceive;
  static CommPlan plan(std::size_t paths) noexcept;

  RecvComm(std::unique_ptr<Connection> connection, const CommOptions& options, StatsSlot stats,
           PathEvents& events) noexcept;
  // Tells the peer how far this end has come. No other call may follow, and the object may be
  // destroyed by another thread.
  void close() noexcept;

  // `buffer_at(i)` gives a ReceiveBuffer for i < `count`, at most kMaxReceives. `*request`, null
  // before, stays null while too much is under way: NCCL calls again. kInvalid: a buffer has no
  // memory handle or is larger than kMaxMessageBytes; then nothing has begun.
  // `Count` is a number or a constant: most receives have one buffer.
  template <class Count, class BufferAt>
  Errc irecv(Count count, BufferAt&& buffer_at, Need need, void** request);
  // The fast irecv, of one buffer, is enter_if_fast(), begin_grant(), write_grant() and
  // post_written(). False: nothing has been done, and irecv() has to be called.
  template <Paths kPaths>
  BL_INLINED bool begin_grant(std::size_t capacity, const MemoryHandle* memory) noexcept;
  template <Paths kPaths>
  BL_INLINED void write_grant(const ReceiveBuffer& buffer, void** request) noexcept;
  template <Paths kPaths>
  BL_INLINED Errc post_written();
  // For a test that leaves its request unfinished: nothing is held at this end.
  static constexpr Errc post_what_is_held() noexcept { return Errc::kOk; }
  // For test(): polls the path that data last came from, and another.
  void poll_paths();
  void collect() override;
  bool finish_below(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status probe_paths() override;

  // --- After a path was fenced: recv_resume.cc ---
  // None: the peer has broken the protocol.
  std::optional<wire::ReceiverReport> take_report();
  // Grants again, over other paths, what the sender has not got by this one. It must have fenced
  // the path, too.
  void resume(const Path& path, const wire::SenderReport& report);
  // Those of the lines whose data has not come and that are before `end`.
  wire::LineSet missing_of(const wire::LineSet& lines, std::uint32_t end) const noexcept;
  bool is_resuming() override;
  bool has_loopback(const Path& path) override;
  bool lose_device_of(Path& path) override;
  bool has_usable_path() const noexcept override { return grant_path_->grants; }
  // For the answer about a new path: the keys of the lines in flight, if its rail has got another
  // device since the comm was made.
  std::optional<wire::LineKeys> line_keys(const Path& path);

  // --- GPU memory: flush.cc ---

  // Called by the thread that registers memory, before data is received into memory that needs
  // flushes and is registered with these rails (a bit for each). Returns those of them whose writes
  // can be flushed: the others must not carry data of this memory. If there is none, that is an
  // error. Takes a millisecond for each rail the first time.
  Result<std::uint8_t> prepare_flush(const gdr::FlushNeed& need, std::uint8_t rails);
  // Makes data that has arrived in these buffers visible to their GPU. `*request`, null before,
  // stays null if that is done at once.
  Errc iflush(std::span<const FlushTarget> targets, void** request);
  // For versions of NCCL that will not call iflush: the receive is done only when its buffers are
  // flushed.
  bool flushes_in_test() const noexcept { return gate_.flushes_in_test(); }
  void flush_before_done(void* request, std::span<const FlushTarget> targets);

 private:
  friend class Comm;  // absorb() and absorb_one()

  // The request that a line in flight belongs to. Written as one word.
  struct alignas(8) Owner {
    enum State : std::uint8_t {
      kNothing,  // the line's message has arrived, or there is none
      kAwaited,
      kOptional,  // it has not arrived, and the request does not wait for it
    };
    std::uint8_t request;
    std::uint8_t index;
    State state;
    std::uint8_t path;  // by which the line was granted
    std::uint32_t position;

    bool waits() const noexcept { return state != kNothing; }
  };
  static_assert(sizeof(Owner) == 8 && offsetof(Owner, index) == 1 && offsetof(Owner, state) == 2 &&
                offsetof(Owner, path) == 3 && offsetof(Owner, position) == 4);
  static constexpr std::uint64_t kNextOwner = (std::uint64_t{1} << 32) + (std::uint64_t{1} << 8);

  static constexpr std::uint32_t kBatch = 32;  // receives posted at a time
  // The receives that may be posted on each path: for all lines in flight, the unused rest of a
  // batch, and one more batch. With more than four paths there are 96: between 64 and 96 lines can
  // be in flight, and the next batch is posted when it fits. Paths that are missing count, because
  // the memory for notices was made for them; only a single path has enough of it in any case.
  static constexpr std::uint32_t receive_depth(std::size_t paths) noexcept {
    constexpr std::uint32_t kLines = wire::kMaxLines;
    return paths <= 4 ? kLines + 2 * kBatch : kLines / 2 + kBatch;
  }
  static_assert(wire::kMaxLines / 2 % kBatch == 0);  // no batch wraps

  // Receives use the requests below this slot, flushes the others: iflush has no way to answer
  // "call again", so receives must not take all requests. All come back to the same list.
  static constexpr std::uint16_t kFirstForFlushes = wire::kMaxGroups;
  static constexpr std::size_t kRequests = 2 * wire::kMaxGroups;

  // Layout of the control memory behind the copy of the sender's ring: the notices of each path,
  // then where flushes read to. With eight paths the notices end with a page.
  static constexpr std::size_t kNoticesAt = wire::kCreditRingBytes;
  static constexpr std::size_t kFlushedBytes = sizeof(std::uint64_t) * 2;
  static constexpr std::size_t flushed_at(std::size_t paths) noexcept {
    return kNoticesAt + paths * receive_depth(paths) * sizeof(wire::Notice);
  }

  static wire::Granted credit_of(const ReceiveBuffer& buffer) noexcept {
    return {.address = reinterpret_cast<std::uint64_t>(buffer.data),
            .capacity = static_cast<std::uint32_t>(buffer.capacity),
            .tag = buffer.tag,
            .rkeys = &buffer.memory->rkeys};
  }
  static bool is_valid(const ReceiveBuffer& buffer) noexcept {
    return buffer.memory != nullptr && buffer.capacity <= wire::kMaxMessageBytes;
  }
  template <Paths kPaths>
  BL_INLINED Path& path_of_grants() noexcept;
  // Whether there is a free request, and places in the send queue. make_room() polls first.
  bool has_room() noexcept;
  BL_SLOW bool make_room();
  // For a call that makes no request.
  Errc leave_with(Errc code) noexcept {
    gate_.leave();
    return code;
  }
  void build_receives() noexcept;
  // kOk: they are posted, or the comm goes on without the path.
  Errc post_receives(Path& path);
  // Afterwards `lines` are spare, unless too many lines are in flight, or with an error.
  BL_SLOW Errc post_receives_for(std::uint32_t lines);
  void build_grant() noexcept;
  void grant_by(Path& path) noexcept;  // from now on
  template <class Count, class BufferAt>
  std::uint32_t write_lines(Count count, BufferAt& buffer_at, Need need,
                            wire::Rails rails) noexcept;
  BL_SLOW Errc withdraw_lines(std::uint32_t written);
  Errc grant(std::uint32_t first, std::uint32_t count);
  BL_SLOW Errc grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head);
  Errc post_grant(std::uint32_t first, std::uint32_t count);
  BL_INLINED void describe_lines(const wire::CreditLine& line) noexcept;
  BL_INLINED int post_lines(Path& path);
  BL_SLOW int post_signaled_grant() noexcept;
  BL_SLOW Errc on_refused_grant(int rc);
  // For what grant_sge_ describes.
  unsigned flags_of_grant(const Path& path) const noexcept {
    return grant_sge_.length <= path.max_inline ? unsigned{IBV_SEND_INLINE} : 0;
  }
  void absorb(Path& path, const ibv_wc* completions, int found);
  BL_INLINED bool absorb_one(const ibv_wc& completion) noexcept;
  BL_SLOW void on_other(Path& path, const ibv_wc& completion);
  void on_write(Path& path, const ibv_wc& completion) noexcept;
  BL_INLINED int on_immediate(const ibv_wc& completion) noexcept;
  int on_optional(const ibv_wc& completion) noexcept;
  void on_notice(Path& path, const ibv_wc& completion);
  // --- Only with several paths: recv_several.cc ---
  struct SeveralPaths {
    // By line: the chunks that have arrived, of a message whose notices have not all arrived.
    std::array<wire::ChunkMask, wire::kMaxLines> chunks{};
    // By line: a bit for each rail that has carried data.
    std::array<std::uint8_t, wire::kMaxLines> carried{};
    // After a path has failed: a message may take more than one receive of a path, so each poll
    // has to count what is spare (CommGate::must_recount). Lines before `sent_again_end` are
    // concerned, or all of them until the sender has reported, too.
    std::uint8_t open_reports = 0;
    std::uint32_t sent_again_end = 0;
  };
  Errc post_receives_on_all(std::uint32_t lines);
  std::uint32_t receives_expected() noexcept;
  std::array<GrantedLine, wire::kMaxLines> granted_lines() const noexcept;
  bool keep_records() override;
  std::optional<std::uint8_t> read_back(const Path& path) override;
  void on_read_back(const Path& path, const ibv_wc& completion) noexcept;
  bool owes_answer(const Path& path) const noexcept override { return path.is_probing; }
  void leave_path(Path& path) override;
  void begin_grants(Path& path) override;
  void on_joined(Path& path) override;
  bool swap_resources(Path& path, PathResources& made) override;
  bool can_swap(const Path& path, const PathResources& made) const noexcept;
  bool use_device_of(const Path& path, PathResources& made);
  bool has_loopback_of_rail(const Path& path) const noexcept;
  void check_stranded();
  void grant_lost_lines();
  // NCCL may have seen the data of an optional receive that was reported missing, and grant its
  // buffer again, before the same data is written once more. It has to wait for that.
  bool is_missing(std::uint64_t address, std::size_t capacity) const noexcept;
  template <class Count, class BufferAt>
  bool is_any_missing(Count count, BufferAt& buffer_at) const noexcept {
    if (missing_lines_.empty()) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const ReceiveBuffer buffer = buffer_at(i);
      if (is_missing(reinterpret_cast<std::uint64_t>(buffer.data), buffer.capacity)) return true;
    }
    return false;
  }
  bool ignores(std::uint16_t line) noexcept;
  void absorb_on(Path& path, const ibv_wc* completions, int found);
  void absorb_reads(const Path& path, const ibv_wc* completions, int found);
  void note_carrier(const Path& path, std::uint16_t line) noexcept;
  void arrived(std::uint32_t place, std::uint32_t size) noexcept;
  std::uint32_t settled() noexcept;

  BL_SLOW void set_flushes_apart() noexcept;
  BL_SLOW void on_flush(const Path& path, const ibv_wc& completion);
  BL_SLOW void flush_arrived();
  static constexpr std::uint8_t bit_of_rail(std::uint8_t rail) noexcept {
    return static_cast<std::uint8_t>(1U << rail);
  }
  Outcome<Loopback> make_loopback(PathResources& resources) const;
  std::optional<Problem> prepare_path(Path& path, const gdr::FlushNeed& need);
  void report_unflushed(const Path& path, const Problem& problem, bool has_others);
  std::uint8_t rails_that_carried(std::uint64_t data) const noexcept;
  void plan_reads(std::uint16_t request, std::span<const FlushTarget> targets) noexcept;
  std::uint8_t narrow_plan(std::uint16_t request) noexcept;
  void start_reads(Request& request, std::uint8_t rails);
  void leave_rail(std::size_t rail);
  void leave_lost_rails();
  void flush_all_by_host(const char* why);
  Errc flush_by_host(const char* why);

  // With watch_, one cache line.
  wire::CreditLine* lines_;           // this end's copy of the sender's ring
  std::uint64_t to_ring_;             // the distance from here to the sender's ring
  std::size_t fast_limit_;            // begin_grant() takes buffers below it; 0: none
  std::uint32_t next_ = 0;            // position of the next line
  std::uint32_t spare_receives_ = 0;  // lines that may be granted: each path has receives for them
  ibv_send_wr grant_wr_{};            // for every grant: only the fields that change are written
  ibv_sge grant_sge_{};               // of grant_wr_
  void** made_ = nullptr;             // where write_grant() has put the request
  Path* grant_path_;  // where grants are sent; polls may change it. Set by grant_by()
  // One batch for all paths: the device copies work requests when they are posted.
  std::array<ibv_sge, kBatch> receive_sges_{};
  std::array<ibv_recv_wr, kBatch> receive_wrs_{};
  std::array<Owner, wire::kMaxLines> owners_{};
  wire::LineSet lost_lines_;     // to be granted again
  wire::LineSet missing_lines_;  // of optional receives, that this end has reported as missing
  // Optional receives that the last report has counted as arrived, because NCCL had seen their
  // data.
  wire::LineSet ignored_lines_;
  SeveralPaths* several_ = nullptr;        // null: there is one path, which has not failed
  std::unique_ptr<SeveralPaths> records_;  // unless several_ is in Connection::extra
  std::uint32_t receive_depth_;            // the most receives posted on a path
  std::uint32_t turn_ = 0;                 // counts polls, to look at each path in turn
  RequestPool<kRequests> requests_;
  FreeRequests free_flushes_;

  GidPolicy gid_;
  PkeyChoice pkey_;
  std::mutex preparing_;                    // serializes prepare_flush()
  std::uint8_t moved_rails_ = 0;            // those that have had another device; a bit for each
  std::uint8_t rails_flushed_by_host_ = 0;  // logged; the same
  std::uint8_t unflushed_rails_ = 0;        // the same
  std::atomic<std::uint64_t> flushed_gpus_{0};  // FlushNeed::owner of all prepared memory
  std::unique_ptr<Flusher> flusher_;            // made by prepare_flush()
  bool host_flushes_ = false;                   // the driver flushes, because the NIC cannot
};

}  // namespace beeline

#include "plugin/transfer/recv_grant.h"
