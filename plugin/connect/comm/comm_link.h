// SPDX-License-Identifier: Apache-2.0
//
// The link of a comm as the control plane sees it: the comm's end number on its channel, and the
// ways in which it ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "plugin/connect/comm/link.h"
#include "plugin/connect/socket/outbox.h"
#include "plugin/wire/message.h"

namespace beeline {

class ControlMailbox;
class DeviceContext;

// Where a comm is known: our number of it, the peer's, and the channel that carries both.
struct CommNumbers {
  std::uint64_t channel = 0;
  std::uint32_t ours = 0;
  std::uint32_t theirs = 0;
};

// Lifecycle: owned by the Connection; the control thread only borrows it. Its destructor tells the
// control thread, and also the peer when nobody said goodbye.
class CommLink final : public Link {
 public:
  // `device`: ours, to compare with only.
  CommLink(PeerName peer, CommNumbers numbers, const DeviceContext* device,
           std::shared_ptr<Outbox> outbox, std::shared_ptr<ControlMailbox> mailbox);
  CommLink(const CommLink&) = delete;
  CommLink& operator=(const CommLink&) = delete;
  ~CommLink() override;

  void send_goodbye(std::uint32_t settled) noexcept override;
  void send_failure(const std::string& why) noexcept override;

  // --- the control thread ---
  bool is_on(const DeviceContext& device) const noexcept { return device_ == &device; }
  // Our device is gone. The peer is told: it would wait for ever for what we had promised.
  void lose_device();
  void on_goodbye(std::uint32_t settled) noexcept;
  // False: it had ended before, or we closed it ourselves, so that nobody has to be told.
  bool die(const std::string& cause);

 private:
  template <class Make>
  void tell(Make&& make_message) noexcept;
  void tell_of_end(wire::RejectCode code, std::string_view why) noexcept;
  // A forked child has copies of its parent's comms. It must not speak in its parent's name.
  bool is_ours() const noexcept;

  const CommNumbers numbers_;
  const DeviceContext* const device_;
  const std::shared_ptr<Outbox> outbox_;
  const std::shared_ptr<ControlMailbox> mailbox_;
  const int pid_;
  std::atomic<bool> goodbye_sent_{false};
};

}  // namespace beeline
