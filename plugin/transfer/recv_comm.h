// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of a comm. Each irecv grants its buffers by writing credit lines into the
// sender's ring; the sender's writes announce themselves in our completion queue.
//
// No line is granted before a receive is posted for its notice: a sender that found none would be
// turned away by the device, which looks like a dead path.
//
// Threads: as Comm. Cost of an irecv: one credit write for all its buffers; receives are posted in
// batches ahead of need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/transfer/comm.h"
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

class RecvComm final : public Comm {
 public:
  static EndpointPlan plan() noexcept;

  RecvComm(Connection&& connection, const CommOptions& options, StatsSlot stats) noexcept;
  ~RecvComm();

  // Null: too much under way; call again. At most kMaxReceives buffers.
  Result<Request*> irecv(std::span<const ReceiveBuffer> buffers);
  // True: all its buffers have arrived, and the request is gone. `sizes`: null, or one for each.
  Result<bool> test(Request& request, int* sizes);

 private:
  // Whom a line in flight belongs to.
  struct Owner {
    std::uint32_t position = 0;
    std::uint8_t request = 0;
    std::uint8_t index = 0;
    bool waits = false;  // its message has not arrived
  };

  static constexpr std::uint32_t kBatch = 32;  // receives posted at a time
  static constexpr std::uint32_t kReceiveDepth = wire::kMaxLines + kBatch;

  bool has_room(std::size_t lines) noexcept;
  Status post_receives();
  void build_grant() noexcept;
  void write_lines(const Request& request, std::span<const ReceiveBuffer> buffers) noexcept;
  Status grant(std::uint32_t first, std::uint32_t count);
  Status post_grant(std::uint32_t first, std::uint32_t count);
  void poll();
  void collect() override { poll(); }
  void on_completion(const ibv_wc& completion);
  void on_write(const ibv_wc& completion) noexcept;
  void on_immediate(const ibv_wc& completion);
  void on_notice(const ibv_wc& completion);
  void arrived(Owner& owner, std::uint32_t size) noexcept;
  Status settle(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status ask_path() override;
  std::uint32_t settled() noexcept;

  wire::CreditLine* lines_;        // the sender's ring as we fill it
  const wire::Notice* notices_;    // by place in the receive queue
  std::uint32_t next_ = 0;         // position of the next line
  std::uint32_t promised_ = 0;     // posted receives that lines in flight may use
  std::uint32_t next_notice_ = 0;  // place of the next receive to post
  std::uint32_t silent_ = 0;       // grants posted since the last signalled one
  bool asking_ = false;            // a question to the path is under way
  ibv_sge grant_sge_{};
  ibv_send_wr grant_wr_{};  // prebuilt: only what changes is written
  std::array<Owner, wire::kMaxLines> owners_;
  RequestPool<wire::kMaxGroups> requests_;
};

}  // namespace beeline
