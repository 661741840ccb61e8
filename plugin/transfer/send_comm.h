// SPDX-License-Identifier: Apache-2.0
//
// The sending end of a comm. The receiver writes credit lines into our ring; each isend takes the
// line that its tag matches and writes the payload where the line says.
//
// Threads: as Comm. Cost of an isend that finds its credit: one line read and summed, one work
// request, one doorbell; later one completion. One that finds none looks at one word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/hot.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"

namespace beeline {

class SendComm final : public Comm {
 public:
  static CommPlan plan() noexcept;

  SendComm(std::unique_ptr<Connection> connection, const CommOptions& options,
           StatsSlot stats) noexcept;
  // Tells the peer how far this end has come. No other call may follow, and the object may be
  // destroyed by another thread.
  void close() noexcept;

  // An isend begins with begin(); what it says is to be called next, if anything, completes it.
  // `*made`, null before, stays so while there is no credit, or no room, for it: call again.
  enum class Begun : std::uint8_t {
    kInVain,     // there is no credit: that was all
    kTaken,      // post_taken()
    kOtherwise,  // isend_otherwise()
  };
  Begun begin(const void* data, std::size_t size, int tag, const MemoryHandle& memory,
              void** made) noexcept;
  Errc post_taken();
  Errc isend_otherwise(int tag, void** made);

 private:
  // Room for every line of the ring, with some to spare for notices and chunks.
  static constexpr std::uint32_t kSendDepth = wire::kMaxLines + 64;

  // An irecv whose lines are not taken in order: tags decide.
  struct Group {
    std::uint32_t first = 0;  // position of its first line
    std::uint8_t count = 0;   // 0: there is none, lines are taken in order
    std::uint8_t next = 0;    // the first line that nobody has taken
    std::uint8_t read = 0;    // lines that have been looked at; those from `next` on are in `lines`
    std::uint8_t taken = 0;   // bit by index: beyond `next`
    std::uint8_t epoch = 0;
    std::array<wire::LineFacts, wire::kMaxReceives> lines;
  };

  // --- The hot path: send_post.h ---
  Begun no_credit() noexcept {
    stats_.add(Counter::kNoCredit);
    return Begun::kInVain;
  }
  bool has_room(std::uint32_t wrs) noexcept {
    return !free_requests_.empty() && first_path().send_free >= wrs;
  }
  void prepare(const void* data, std::size_t size, const MemoryHandle& memory) noexcept;
  Request& open_request(std::uint32_t position, std::uint32_t size, std::uint32_t wrs) noexcept;
  void fill_in(const Request& request) noexcept;

  // --- Beside it: send_path.cc ---
  bool is_next(const wire::LineFacts& line) const noexcept;
  void open_group(const wire::LineFacts& line) noexcept;
  void await(std::uint64_t order) noexcept;
  void await_in_order(std::uint64_t order) noexcept;
  void await_by_tag() noexcept;
  bool read_whole(std::uint32_t position, wire::LineFacts& line);
  bool is_unneeded() const noexcept;
  Errc skip_unneeded(void** made);
  Errc without_credit() noexcept;
  Errc isend_by_tag(int tag, void** made);
  const wire::LineFacts* match(int tag);
  bool read_line(std::uint32_t index, wire::LineFacts& line);
  void take(const wire::LineFacts& line, std::uint32_t size) noexcept;
  bool take_by_tag(std::uint8_t index) noexcept;
  [[gnu::noinline]] void note_last() noexcept;
  Errc post(const wire::LineFacts& line, void** made);
  Errc post_whole(const wire::LineFacts& line, void** made);
  Errc post_announced(const wire::LineFacts& line, void** made);
  int post_chunks(const Request& request, const wire::LineFacts& line);
  void note_cut(std::uint32_t size, int tag, std::uint32_t kept);
  bool make_room(std::uint32_t wrs);
  BL_APART Errc take_back(Request& request, int rc);
  BL_APART Errc take_back_taken(int rc);
  Errc too_many_chunks(std::uint32_t size) const;
  std::uint32_t chunks_of(std::uint32_t size) const noexcept;

  void absorb(const ibv_wc* completions, int found) override;
  void absorb_one(const ibv_wc& completion) override;
  BL_INLINED bool complete(const ibv_wc& completion) noexcept;
  Status settle(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status ask_path() override { return {}; }  // every send is signalled, and a test waits for one
  std::uint32_t settled() noexcept;

  const wire::CreditLine* ring_;
  // The first line that nobody has taken: where it is or will be, and its word of order if all goes
  // on as before. Where that cannot be told, or is not enough, at least its number: no honest line
  // has a word like that, and while there is a group, only what the group knows is believed.
  const wire::CreditLine* awaited_;
  std::uint64_t awaited_order_ = 0;
  wire::Notice* notices_;       // one by request: where a notice that cannot go inline lies
  std::uint32_t chunk_bytes_;   // the most that one work request carries
  std::int64_t most_whole_;     // bytes: a longer message needs a notice; -1: all do
  std::uint64_t most_at_once_;  // bytes: begin() leaves a longer one to isend_otherwise()
  bool cut_said_ = false;
  std::int64_t torn_since_ns_ =
      0;  // when the next line was first seen to be incomplete; 0: it is not
  ibv_sge sge_{};
  ibv_send_wr wr_{};                // prebuilt: only what changes is written
  ibv_send_wr* refused_ = nullptr;  // by the device; there is only one
  void** made_ = nullptr;           // where begin() has put the request
  Group group_;
  RequestPool<wire::kMaxLines> requests_;
};

}  // namespace beeline

#include "plugin/transfer/send_post.h"
