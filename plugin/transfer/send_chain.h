// SPDX-License-Identifier: Apache-2.0
//
// Work requests that carry a part of a message: writes of its data, and perhaps a notice behind
// them. They are posted together, so that the device is notified once. Only the last is signaled.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/transfer/path.h"
#include "plugin/transfer/work_id.h"
#include "plugin/wire/notice.h"

namespace beeline {

// How many writes carry so many bytes, if one carries `most_bytes`.
constexpr std::uint32_t writes_of(std::uint32_t bytes, std::uint32_t most_bytes) noexcept {
  return bytes == 0 ? 0 : (bytes - 1) / most_bytes + 1;
}

class SendChain {
 public:
  // For the request in this slot.
  SendChain(Path& path, std::uint16_t slot) noexcept : path_(path), slot_(slot) {}
  SendChain(const SendChain&) = delete;
  SendChain& operator=(const SendChain&) = delete;

  // Each of these returns 0, or the errno of ibv_post_send; the chain is then of no use any more.
  // `source` may have no bytes.
  int write(const ibv_sge& source, std::uint64_t address, std::uint32_t rkey) noexcept;
  // One of these is last. `place`, in registered memory, keeps a notice that the device cannot take
  // inline until it is sent. Others leave that memory alone, so that it is never really allocated.
  int end_with_notice(const wire::Notice& notice, wire::Notice& place) noexcept;
  int end_with_write() noexcept;

 private:
  static constexpr std::size_t kMost = 4;  // at a time

  int add(ibv_wr_opcode opcode, const ibv_sge& sge) noexcept;
  int end() noexcept;
  int post() noexcept;

  Path& path_;
  std::uint16_t slot_;
  std::uint16_t wrs_ = 0;
  std::uint32_t bytes_ = 0;
  std::size_t count_ = 0;  // not posted
  std::array<ibv_sge, kMost> sges_;
  std::array<ibv_send_wr, kMost> chain_;
};

}  // namespace beeline
