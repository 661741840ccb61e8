// SPDX-License-Identifier: Apache-2.0
//
// The sending end of a comm. The receiver writes credit lines into this end's ring. Each isend
// takes the line that its tag matches, and writes the payload to the address in that line.
//
// Threads: as Comm. Cost of an isend with credit: one line read and summed, one work request, one
// doorbell; later one completion. An isend without credit reads one word of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/base/hot.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/held_sends.h"
#include "plugin/transfer/late_keys.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/transfer/scheduler.h"
#include "plugin/transfer/split_messages.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"
#include "plugin/wire/reports.h"

namespace beeline {

class SendChain;

class SendComm : public Comm {
 public:
  static constexpr Role kRole = Role::kSend;
  static CommPlan plan(std::size_t paths) noexcept;

  SendComm(std::unique_ptr<Connection> connection, const CommOptions& options, StatsSlot stats,
           PathEvents& events) noexcept;
  // Tells the peer how far this end has come. No other call may follow, and the object may be
  // destroyed by another thread.
  void close() noexcept;

  // The fast isend is look_for_credit(), begin_isend(), and perhaps one more function: see Begun.
  // The exported function inlines the first two, and ends with a call of the third, which compiles
  // to a jump, so that "no credit" is answered without a stack frame.
  enum class Begun : std::uint8_t {
    kPrepared,  // `*made` is the request, and post_prepared() comes next
    kGrouped,   // nothing has been done, and hold_grouped() comes next
    kHeld,      // `*made` is the request
    kGroup,     // the same, and post_held() comes next
    kSlow,      // nothing has been done, and isend() has to be called
  };
  // `awaited` is Credit::order.
  BL_INLINED Begun begin_isend(std::uint64_t awaited, const void* data, std::size_t size, int tag,
                               const MemoryHandle* memory, void** made) noexcept;
  template <Paths kPaths>
  BL_INLINED Errc post_prepared();
  BL_INLINED Begun hold_grouped(const void* data, std::size_t size, int tag,
                                const MemoryHandle* memory, void** made) noexcept;
  [[gnu::noinline]] Errc post_held();
  // The fast isend of a comm with several paths is enter_if_fast(), begin_on_several(), and
  // post_prepared(): the message is short, and takes the path of the short message before it, if
  // that one has little to do. False: the gate is left, and isend() has to be called.
  BL_INLINED bool begin_on_several(const void* data, std::size_t size, int tag,
                                   const MemoryHandle& memory, void** made) noexcept;
  // In every other case. `*made`, null before, stays null while there is no credit or no room: NCCL
  // calls again.
  BL_SLOW Errc isend(const void* data, std::size_t size, int tag, const MemoryHandle& memory,
                     void** made);
  // For a test that leaves its request unfinished.
  BL_INLINED Errc post_what_is_held() { return held_.empty() ? Errc::kOk : post_held(); }
  // For test(): polls the paths that have work under way, so that each of them is measured.
  void poll_paths(const Request& request);

  double rate_of_path(std::size_t index) const noexcept override;
  void collect() override;
  bool finish_below(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status probe_paths() override;
  std::optional<std::uint32_t> line_of(std::uint64_t wr_id) noexcept override;
  const char* how_lost(std::uint32_t position) noexcept override;

  // --- After a path was fenced: send_resume.cc ---
  wire::SenderReport take_report() const noexcept;
  // Sends again, over other paths, what the receiver has not got by this one. It must have fenced
  // the path, too. Returns the lines that it calls missing although their messages have completed.
  wire::LineSet resume(const Path& path, const wire::ReceiverReport& report);
  bool regrant_rest() override { return false; }  // what waits is sent by tests, as ever
  std::optional<std::uint8_t> read_back(const Path&) override { return 0; }
  bool needs_loopback(const Path&) override { return false; }
  bool lose_device_of(Path& path) override;
  bool has_usable_path() const noexcept override;
  // Before a path joins: the keys that the receiver has sent for its rail, if any.
  void take_line_keys(const Path& path, const std::optional<wire::LineKeys>& keys);

 private:
  friend class Comm;  // absorb() and absorb_one()

  // A message up to this size is short: a NIC of 100 Gb/s carries it in 0.3 microseconds.
  static constexpr std::uint32_t kShortBytes = 4096;
  // A short message asks the scheduler if so many work requests are under way on its path.
  static constexpr std::uint32_t kFewUnderWay = 16;
  // Room for every line of the ring, with some to spare for notices and chunks.
  static constexpr std::uint32_t kSendDepth = wire::kMaxLines + 64;
  // By request, and with several paths also by split message and path.
  static constexpr std::size_t notice_places(std::size_t paths) noexcept {
    return wire::kMaxLines + (paths > 1 ? SplitMessages::kMost * wire::kMaxRails : 0);
  }

  // --- The fast functions: send_post.h ---
  Request* leave_unprepared() noexcept {
    gate_.leave();
    return nullptr;
  }
  // The path of a message that begin_isend() or begin_on_several() takes.
  template <Paths kPaths>
  BL_INLINED Path& fast_path() noexcept;
  // Null: nothing has been done.
  template <Paths kPaths>
  BL_INLINED Request* prepare_for(std::uint64_t awaited, PreparedSend& send, const void* data,
                                  std::size_t size, int tag, const MemoryHandle& memory,
                                  void** made) noexcept;
  BL_INLINED bool takes_short(const Path& path, const MemoryHandle& memory) const noexcept;
  static unsigned flags_of(const Path& path, std::size_t size,
                           const MemoryHandle& memory) noexcept {
    return size > path.max_inline ? unsigned{IBV_SEND_SIGNALED} : memory.short_send_flags;
  }
  bool has_room(const Path& path, std::uint32_t wrs) const noexcept {
    return !free_requests_.empty() && path.send_free >= wrs;
  }
  // After a post of one work request, for the next line.
  void posted(Path& path, std::uint32_t size) noexcept;
  void describe(PreparedSend& send, const Path& path, const void* data, std::size_t size,
                std::uint32_t lkey, const MemoryHandle& memory) noexcept;
  Request& open_request(std::uint32_t position, std::uint32_t size, std::uint32_t wrs) noexcept;
  template <Paths kPaths>
  void name_line(PreparedSend& send, const Path& path, const Request& request) noexcept;

  // --- Everything else: send_slow.cc ---
  [[gnu::noinline]] void complete_before(Path& path, const Request& last) noexcept;
  BL_SLOW Errc withdraw_prepared(Path& path, int rc);
  Errc isend_entered(int tag, const MemoryHandle& memory, void** made);
  Errc skip_unneeded(void** made);
  Errc post(const wire::LineFacts& line, const MemoryHandle& memory, void** made);
  Errc post_on(Path& path, const wire::LineFacts& line, const MemoryHandle& memory, void** made);
  Errc post_with_immediate(Path& path, const wire::LineFacts& line, void** made);
  Errc post_with_notice(Path& path, const wire::LineFacts& line, void** made);
  int post_data_and_notice(Path& path, const Request& request, const wire::LineFacts& line);
  wire::Notice notice_of(const Path& path, const Request& request,
                         wire::ChunkMask which) const noexcept;
  // The key of the receive buffer for this path. None: the path cannot carry the message.
  std::optional<std::uint32_t> rkey_for(const Path& path, std::uint32_t position) const noexcept;
  BL_SLOW Errc withdraw(Path& path, Request& request, int rc);
  void report_cut(std::uint32_t size, int tag, std::uint32_t kept);
  bool make_room(const Path& path, std::uint32_t wrs);
  Errc refuse_writes(const Path& path, std::uint32_t size) const;

  // --- Only with several paths: send_several.cc ---
  struct SeveralPaths {
    SeveralPaths(std::span<const Path> paths, bool split_on_qps) noexcept;
    Scheduler scheduler;
    SplitMessages splits;
    bool has_lost_messages = false;  // there are requests whose path is kNoPath
  };
  PathMask usable_paths(std::uint32_t position, const MemoryHandle& memory) noexcept;
  // Ends the comm if a message can be carried by no path, though some path works.
  void check_stranded();
  template <class Is>
  PathMask paths_that(Is&& is) noexcept;
  Errc post_on_some(const wire::LineFacts& line, const MemoryHandle& memory, void** made);
  // From now on short messages take this path; or none, until the scheduler has chosen one.
  void send_short_by(Path& path) noexcept;
  void end_short_path() noexcept { most_fast_ = 0; }
  Errc post_split(const wire::LineFacts& line, const MemoryHandle& memory, PathMask usable,
                  void** made);
  void assign_waiting();
  bool assign_some(SplitMessage& message, std::int64_t now_ns);
  bool post_late_notices(SplitMessage& message, PathMask notified, std::int64_t now_ns);
  bool post_chunks(Path& path, SplitMessage& message, wire::ChunkMask chunks, bool is_last,
                   std::int64_t now_ns);
  int write_chunks(SendChain& chain, const Path& path, const SplitMessage& message,
                   wire::ChunkMask chunks) const noexcept;
  static constexpr std::uint8_t kNoPath = 0xff;  // Request::path of a message to send again
  bool keep_records() override;
  // Every send of a comm with several paths is signaled.
  bool owes_answer(const Path& path) const noexcept override { return has_sends_under_way(path); }
  std::int64_t expected_ns(const Path& path) const noexcept override;
  void leave_path(Path& path) override {
    if (!held_.empty()) held_.drop();  // empty, if the control thread calls
    if (short_path_ == &path) end_short_path();
  }
  void begin_grants(Path&) override {}
  void on_joined(Path& path) override;
  bool swap_resources(Path& path, PathResources& made) override;
  // For the notice of a path about a split message.
  wire::Notice& notice_place(const Request& request, const Path& path) noexcept;
  wire::LineSet finished_before(std::uint32_t next) noexcept;
  void take_back_chunks(const Path& path, Request& request,
                        const wire::ReceiverReport& report) noexcept;
  void take_back_message(Request& request, const wire::ReceiverReport& report) noexcept;
  BL_SLOW void resend_messages() noexcept;
  void absorb_on(Path& path, const ibv_wc* completions, int found);
  void count_sent(const Path& path, Request& request) noexcept;
  BL_SLOW void count_other(Path& path, SendId id) noexcept;

  void absorb(Path& path, const ibv_wc* completions, int found);
  BL_SLOW void absorb_answer(Path& path, const ibv_wc* completions, int found);
  BL_INLINED bool absorb_one(const ibv_wc& completion) noexcept;
  BL_INLINED bool complete(Path& path, const ibv_wc& completion) noexcept;
  std::uint32_t settled() noexcept;
  std::int64_t most_immediate(const Path& path) const noexcept;  // Path::most_immediate

  // With watch_ and the sge of alone_, one cache line.
  const wire::CreditLine* ring_;
  // The longest message that begin_isend() or begin_on_several() prepares; 0: none.
  std::uint64_t most_fast_ = 0;
  PreparedSend alone_;     // that is posted at once
  void** made_ = nullptr;  // where begin_isend() has put the request
  wire::Notice* notices_;  // see notice_places()
  bool is_cut_reported_ = false;
  HeldSends held_;                  // only with one path, which has not failed
  ibv_send_wr* refused_ = nullptr;  // an output of ibv_post_send; nobody reads it
  CreditReader credits_;
  // With several paths: that of short messages, and how many take it before the scheduler chooses
  // again.
  Path* short_path_ = nullptr;
  std::uint32_t short_left_ = 0;
  SeveralPaths* several_ = nullptr;        // null: there is one path, which has not failed
  std::unique_ptr<SeveralPaths> records_;  // unless several_ is in Connection::extra
  std::unique_ptr<LateKeys> late_keys_;    // null unless a rail of the receiver has moved
  const std::size_t routed_above_;         // CommOptions::routed_above
  RequestPool<wire::kMaxLines> requests_;
};

}  // namespace beeline

#include "plugin/transfer/send_post.h"
