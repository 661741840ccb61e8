// SPDX-License-Identifier: Apache-2.0
//
// The sending end of a comm. The receiver writes credit lines into our ring; each isend takes the
// line that its tag matches and writes the payload where the line says.
//
// Threads: as Comm. Cost of an isend that finds its credit: one line read and summed, one work
// request, one doorbell; later one completion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/transfer/comm.h"
#include "plugin/transfer/memory_handle.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"

namespace beeline {

class SendComm final : public Comm {
 public:
  static EndpointPlan plan() noexcept;

  SendComm(Connection&& connection, const CommOptions& options, StatsSlot stats) noexcept;
  ~SendComm();

  // Null: no credit, or no room, for it yet; call again.
  Result<Request*> isend(const void* data, std::size_t size, int tag, const MemoryHandle& memory);
  // True: the buffer is the caller's again, and the request is gone. `size`: null or one int.
  Result<bool> test(Request& request, int* size);

 private:
  // Room for every line of the ring, with some to spare for notices and chunks.
  static constexpr std::uint32_t kSendDepth = wire::kMaxLines + 64;

  // The lines of the irecv that isends take from at the moment.
  struct Group {
    std::uint32_t first = 0;   // position of its first line
    std::uint8_t count = 0;    // 0: not known yet, its first line has not come
    std::uint8_t present = 0;  // bit by index: the line was read into `lines`
    std::uint8_t taken = 0;
    std::array<wire::CreditLine, wire::kMaxReceives> lines;
  };

  const wire::CreditLine* match(int tag);
  bool fetch(std::size_t index);
  void note_cut(std::size_t size, int tag, std::size_t kept);
  void take(const wire::CreditLine& line) noexcept;
  Result<Request*> post(const wire::CreditLine& line, const void* data, std::uint32_t size,
                        const MemoryHandle& memory);
  Status post_whole(Request& request, const wire::CreditLine& line, const void* data,
                    std::uint32_t size, const MemoryHandle& memory);
  Status post_chunks(Request& request, const wire::CreditLine& line, const void* data,
                     std::uint32_t size, const MemoryHandle& memory);
  Failure<Error> too_many_chunks(std::uint32_t size) const;
  std::uint32_t chunks_of(std::uint32_t size) const noexcept;
  bool needs_notice(std::uint32_t size) const noexcept;
  void poll();
  void collect() override { poll(); }
  void on_completion(const ibv_wc& completion);
  Status settle(std::uint32_t settled) override;
  bool waits_below(std::uint32_t settled) const noexcept override;
  Status ask_path() override { return {}; }  // every send is signalled, and a test waits for one
  std::uint32_t settled() noexcept;

  const wire::CreditLine* ring_;
  wire::Notice* notices_;  // one by request: where a notice that cannot go inline lies
  std::size_t routed_above_;
  std::uint32_t chunk_bytes_;  // the most that one work request carries
  Notify notify_;
  bool cut_said_ = false;
  ibv_sge sge_{};
  ibv_send_wr wr_{};  // prebuilt: only what changes is written
  Group group_;
  RequestPool<wire::kMaxLines> requests_;
};

}  // namespace beeline
