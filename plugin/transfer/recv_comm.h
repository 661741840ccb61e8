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
#include "plugin/transfer/gpu_flush.h"
#include "plugin/transfer/grant_writer.h"
#include "plugin/transfer/line_table.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/transfer/receive_pool.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"
#include "plugin/wire/reports.h"

namespace beeline {

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
  // For test() of this request: polls the path that data last came from, and another if something
  // is still missing.
  void poll_paths(const Request& request);
  void collect() override;
  bool finish_below(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status probe_paths() override;
  std::optional<AwaitedLine> awaited_line() noexcept override;

  // --- After a path was fenced: recv_resume.cc ---
  // None: the peer has broken the protocol.
  std::optional<wire::ReceiverReport> take_report();
  // Grants again, over other paths, what the sender has not got by this one. It must have fenced
  // the path, too.
  void resume(const Path& path, const wire::SenderReport& report);
  const LineTable& lines() const noexcept { return table_; }
  bool regrant_rest() override;
  bool needs_loopback(const Path& path) override { return flush_.needs_loopback(path); }
  bool lose_device_of(Path& path) override;
  bool has_usable_path() const noexcept override { return grants_.path().grants; }
  // For the answer about a new path: the keys of the lines in flight, if its rail has got another
  // device since the comm was made.
  std::optional<wire::LineKeys> line_keys(const Path& path);

  // --- GPU memory: gpu_flush.h ---

  // Called by the thread that registers memory, before data is received into memory that needs
  // flushes and is registered with these rails (a bit for each). Returns those of them whose writes
  // can be flushed: the others must not carry data of this memory. If there is none, that is an
  // error. Takes a millisecond for each rail the first time.
  Result<std::uint8_t> prepare_flush(const gdr::FlushNeed& need, std::uint8_t rails) {
    return flush_.prepare(need, rails,
                          connection_.memory.at<std::byte>(flushed_at(connection_.planned_paths)));
  }
  // Makes data that has arrived in these buffers visible to their GPU. `*request`, null before,
  // stays null if that is done at once.
  Errc iflush(std::span<const FlushTarget> targets, void** request);
  // For versions of NCCL that will not call iflush: the receive is done only when its buffers are
  // flushed.
  bool flushes_in_test() const noexcept { return gate_.flushes_in_test(); }
  void flush_before_done(void* request, std::span<const FlushTarget> targets);

 private:
  friend class Comm;  // absorb() and absorb_one()

  using Owner = LineTable::Owner;

  // Receives use the requests below this slot, flushes the others: iflush has no way to answer
  // "call again", so receives must not take all requests. All come back to the same list.
  static constexpr std::uint16_t kFirstForFlushes = wire::kMaxGroups;
  static constexpr std::size_t kRequests = 2 * wire::kMaxGroups;

  // The place in the control memory, behind the notices of each path, where flushes read to.
  static constexpr std::size_t flushed_at(std::size_t paths) noexcept {
    return notices_at(paths) + paths * ReceivePool::depth_of(paths) * sizeof(wire::Notice);
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
  // kOk: they are posted, or the comm goes on without the path.
  Errc post_receives(Path& path);
  // Afterwards `lines` are spare, unless too many lines are in flight, or with an error.
  BL_SLOW Errc post_receives_for(std::uint32_t lines);
  template <class Count, class BufferAt>
  std::uint32_t write_lines(Count count, BufferAt& buffer_at, Need need,
                            wire::Rails rails) noexcept;
  BL_SLOW Errc withdraw_lines(std::uint32_t written);
  Errc grant(std::uint32_t first, std::uint32_t count);
  BL_SLOW Errc grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head);
  Errc post_grant(std::uint32_t first, std::uint32_t count);
  BL_SLOW Errc on_refused_grant(int rc);
  void absorb(Path& path, const ibv_wc* completions, int found);
  BL_INLINED bool absorb_one(const ibv_wc& completion) noexcept;
  template <Paths kPaths>
  void absorb_on(Path& path, const ibv_wc* completions, int found);
  BL_SLOW void on_other(Path& path, const ibv_wc& completion);
  void count_optional(Path& path, std::uint32_t place, std::uint32_t size) noexcept;
  void on_write(Path& path, const ibv_wc& completion) noexcept;
  BL_INLINED int on_immediate(const ibv_wc& completion) noexcept;
  int on_optional(const ibv_wc& completion) noexcept;
  void on_notice(Path& path, const ibv_wc& completion);
  BL_SLOW void on_wrong_notice(const Path& path, const wire::Notice& notice, std::uint32_t bytes);
  // --- Only with several paths: recv_several.cc ---
  Errc post_receives_on_all();
  bool keep_records() override;
  std::optional<std::uint8_t> read_back(const Path& path) override {
    return flush_.read_back(path);
  }
  bool owes_answer(const Path& path) const noexcept override { return path.is_probing; }
  void leave_path(Path& path) override;
  void begin_grants(Path& path) override;
  void on_joined(Path& path) override;
  bool swap_resources(Path& path, PathResources& made) override;
  void check_stranded();
  void grant_lost_lines();
  template <class Count, class BufferAt>
  bool is_any_missing(Count count, BufferAt& buffer_at) const noexcept {
    if (!table_.has_missing()) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const ReceiveBuffer buffer = buffer_at(i);
      const auto address = reinterpret_cast<std::uint64_t>(buffer.data);
      if (table_.is_missing(address, buffer.capacity)) return true;
    }
    return false;
  }
  // Whether the message may come although it counts as arrived.
  bool ignores(std::uint16_t line) noexcept;
  void absorb_reads(const Path& path, const ibv_wc* completions, int found);
  void arrived(std::uint32_t place, std::uint32_t size) noexcept;
  BL_SLOW void set_flushes_apart() noexcept;

  // With watch_, one cache line.
  wire::CreditLine* lines_;           // this end's copy of the sender's ring
  std::size_t fast_limit_;            // begin_grant() takes buffers below it; 0: none
  std::uint32_t next_ = 0;            // position of the next line
  std::uint32_t spare_receives_ = 0;  // lines that may be granted: each path has receives for them
  GrantWriter grants_;                // polls may change its path
  void** made_ = nullptr;             // where write_grant() has put the request
  ReceivePool receives_;
  LineTable table_;
  std::uint32_t turn_ = 0;        // counts polls, to look at each path in turn
  std::uint8_t moved_rails_ = 0;  // those that have had another device; a bit for each
  RequestPool<kRequests> requests_;
  FreeRequests free_flushes_;
  GpuFlush flush_;
};

}  // namespace beeline

#include "plugin/transfer/recv_grant.h"
