// SPDX-License-Identifier: Apache-2.0
//
// The control thread's work: it takes orders from the mailbox, holds the parts together, and ends
// when there is nothing left to do. Lifecycle: made for one run of the thread, which may be one of
// many.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "plugin/connect/channel/inbound_handshakes.h"
#include "plugin/connect/handshake/acceptor.h"
#include "plugin/connect/handshake/connector.h"
#include "plugin/connect/handshake/control_context.h"

namespace beeline {

struct ControlSetup {
  const ControlOptions* options = nullptr;
  const ControlHooks* hooks = nullptr;
  const DeviceTable* devices = nullptr;
  ProcessName self;
  std::shared_ptr<ControlMailbox> mailbox;
};

class ControlLoop {
 public:
  static Result<std::unique_ptr<ControlLoop>> create(ControlSetup setup);
  ControlLoop(ControlSetup setup, std::unique_ptr<Poller> poller);
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;
  ~ControlLoop();

  void run();
  // After run() has thrown: what depends on us is told that it has ended.
  void give_up() noexcept;

 private:
  enum class Mood : std::uint8_t { kGoOn, kStop };
  Mood handle_orders();
  // Begins as many as one turn allows, because connects that have begun should end before more
  // begin.
  void begin_connects();
  bool has_work();
  // At intervals, as long as the thread runs.
  void schedule_expiry();
  // True: the thread may end.
  bool wind_up();

  void on_device_event(const DeviceContext& context, const verbs::AsyncEvent& event);
  Status handle_message(Channel& channel, const wire::Frame& frame);
  void on_reject(Channel& channel, const wire::Reject& reject);
  void on_channel(Introduced introduced);
  std::optional<wire::Refuse> check_hello(const wire::Hello& hello);
  std::optional<wire::Refuse> check_identity(const wire::Hello& hello);
  bool has_precedence_over(const wire::ProcessId& other) const;
  ControlContext context();

  ControlSetup setup_;
  Orders orders_;
  std::deque<std::uint32_t> to_begin_;  // attempts, by comm
  std::unique_ptr<Poller> poller_;
  Poller::Key wakeup_key_ = 0;
  PortWatch ports_;
  CmHub cm_;
  Channels channels_;
  InboundHandshakes handshakes_;
  Dialer dialer_;
  Connector connector_;
  Acceptor acceptor_;
};

}  // namespace beeline
