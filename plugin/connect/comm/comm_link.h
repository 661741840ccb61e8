// SPDX-License-Identifier: Apache-2.0
//
// The Link of a comm that a handshake has made. It sends this end's goodbye or failure over the
// control channel. The control thread calls it when the peer has closed or died, or when the local
// device is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/connect/comm/link.h"
#include "plugin/connect/socket/outbox.h"
#include "plugin/wire/message.h"

namespace beeline {

class ControlMailbox;
class DeviceContext;
struct Device;

// The numbers by which both ends know a comm, and the channel on which the numbers are used.
struct CommNumbers {
  std::uint64_t channel = 0;
  std::uint32_t ours = 0;
  std::uint32_t theirs = 0;
};

// A link that was destroyed.
struct GoneLink {
  CommNumbers numbers;
  std::optional<std::uint32_t> settled;  // as the goodbye said; none: there was no goodbye
};

// Lifecycle: the Connection owns it, and the control thread borrows it. Its destructor tells the
//   control thread, and also the peer unless the comm has said goodbye.
class CommLink final : public Link, public std::enable_shared_from_this<CommLink> {
 public:
  // `devices` are the local ones on which the comm depends.
  CommLink(PeerName peer, CommNumbers numbers, std::vector<const Device*> devices,
           std::shared_ptr<MessageSink> outbox, std::shared_ptr<ControlMailbox> mailbox,
           bool exchanges_reports = false);
  ~CommLink() override;

  void send_goodbye(std::uint32_t settled) noexcept override;
  void send_failure(const std::string& why) noexcept override;
  void tell(PathNews news) noexcept override;
  void tell_end(const std::string& line) noexcept override;
  bool exchanges_reports() const noexcept override { return exchanges_reports_; }
  wire::Bytes send_about_path(PathMessage message) noexcept override;
  bool has_channel() noexcept override { return outbox_->is_open(); }
  void order(PathOrder order) noexcept override;
  void discard(std::unique_ptr<PathResources> resources) noexcept override;
  std::optional<PathMail> take_mail() noexcept override;

  // --- For the control thread ---
  const CommNumbers& numbers() const noexcept { return numbers_; }
  // After the channel was lost and goes on: tells the peer how this end stands. What was said
  // before may have been lost.
  void say_again() noexcept;
  // Whether the comm depends on the device, also if that was opened again since.
  bool is_on(const DeviceContext& context) const noexcept;
  std::span<const Device* const> devices() const noexcept { return devices_; }
  // Makes the comm depend on one more device.
  void add_device(const Device& device);
  // A local device is gone. If the comm cannot go on with others, this tells the peer, which would
  // otherwise wait for ever for data that this end has promised.
  void lose_device(const DeviceContext& device);
  void on_goodbye(std::uint32_t settled) noexcept;
  // False: the peer has broken the protocol.
  bool on_message(PathMessage message);
  void on_result(PathMail result);
  // There may be something to do: a port has changed, or due_ns() has come.
  void alert() noexcept;
  // The time of the timer that will serve the link next, for the control loop.
  std::int64_t& timer_ns() noexcept { return timer_ns_; }
  // Returns false if the link had ended before, or this end has closed it.
  bool die(const std::string& cause);

 private:
  void ask_for_service() noexcept override;
  void add_mail(PathMail mail);
  template <class Make>
  void send(Make&& make_message) noexcept;
  void send_end(wire::RejectCode code, std::string_view why) noexcept;
  bool has_said_goodbye() const noexcept { return goodbye_ != 0; }
  std::optional<std::uint32_t> said_settled() const noexcept;
  // False in a forked child, which has copies of its parent's comms and must not send for them.
  bool is_ours() const noexcept;

  const CommNumbers numbers_;
  std::vector<const Device*> devices_;  // used by the control thread only
  const std::shared_ptr<MessageSink> outbox_;
  const std::shared_ptr<ControlMailbox> mailbox_;
  const int pid_;
  const bool exchanges_reports_;
  std::int64_t timer_ns_ = kNever;
  std::atomic<std::uint64_t> goodbye_{0};  // kSaid and the settled position; 0: none was said
  std::mutex mutex_;
  // Under the mutex:
  std::string failure_;                     // that the peer was told of
  std::vector<wire::Fenced> sent_reports_;  // the last of each path
  std::list<PathMail> mail_;                // not taken
};

}  // namespace beeline
