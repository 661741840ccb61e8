// SPDX-License-Identifier: Apache-2.0
//
// The main loop of the control thread. It takes orders from the mailbox, passes events between the
// parts that do the work, and ends when there is nothing left to do.
// Lifecycle: one object for one run of the thread. A process may have many runs in sequence.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "plugin/connect/channel/inbound_handshakes.h"
#include "plugin/connect/control/listener_slots.h"
#include "plugin/connect/control/wait_log.h"
#include "plugin/connect/handshake/acceptor.h"
#include "plugin/connect/handshake/comm_service.h"
#include "plugin/connect/handshake/connector.h"

namespace beeline {

struct ControlSetup {
  const ControlOptions* options = nullptr;
  PortEvents* port_events = nullptr;  // may be null
  const DeviceTable* devices = nullptr;
  ProcessName self;
  std::shared_ptr<ControlMailbox> mailbox;
};

class ControlLoop final : ChannelEvents, PortEvents {
 public:
  static Result<std::unique_ptr<ControlLoop>> create(ControlSetup setup);
  ControlLoop(ControlSetup setup, std::unique_ptr<Poller> poller);
  ~ControlLoop();

  void run();
  // Called after run() has thrown. Ends all channels and fails all connects and accepts.
  void give_up() noexcept;

 private:
  // Returns false if the thread has to stop.
  bool handle_orders();
  // Begins or resumes as many connects as one turn allows. Those that have begun should end before
  // more begin.
  void begin_connects();
  bool has_work();
  // Looks what the comms and the listeners wait for, at intervals for as long as the thread runs.
  void schedule_wait_log();
  void tell_about_ports(const DeviceContext& context, const verbs::AsyncEvent& event);
  // Sees to it that what has happened to paths is logged in time.
  void schedule_path_log();
  // Has the mailbox end forgotten connects, at intervals for as long as the thread runs.
  void schedule_expiry();
  // Returns true if there was nothing left to do and the mailbox agrees that the thread ends.
  bool finish_if_idle();

  // --- PortEvents ---
  void on_device_event(const DeviceContext& context, const verbs::AsyncEvent& event) override;
  void on_device_back(const DeviceContext& context) override;
  // --- ChannelEvents ---
  std::optional<wire::ResumeOffer> make_resume_offer() override;
  std::optional<DialTarget> find_dial_target(const wire::ProcessId& process) override;
  void on_unknown_listener(std::uint32_t comm, const std::string& text) override;
  void on_unreachable(const wire::ProcessId& process, const Error& error,
                      const std::string& text) override;
  std::optional<wire::Refuse> check_hello(const wire::Hello& hello) override;
  void on_introduced(Introduced introduced) override;
  Status on_message(Channel& channel, const wire::Frame& frame) override;
  void on_channel_lost(Channel& channel, const std::string& cause) override;
  void on_channel_back(Channel& channel) override;
  void on_channel_end(Channel& channel, const std::string& cause) override;
  bool has_handshake_on(const Channel& channel) const override;
  bool are_ports_down(const Channel& channel) override;

  void on_reject(Channel& channel, const wire::Reject& reject);
  Status on_path_message(Channel& channel, PathMessage message);
  void begin_waiting(const wire::ProcessId& process);
  // Where peers can dial this process. Opens a listening socket if there is none yet.
  Outcome<std::vector<wire::SocketAddress>> listening_addresses();
  std::optional<wire::Refuse> check_identity(const wire::Hello& hello);
  ControlContext context();

  ControlSetup setup_;
  Orders orders_;
  std::deque<std::uint32_t> to_begin_;  // connects to begin or to resume, by comm
  std::unique_ptr<Poller> poller_;
  Poller::Key wakeup_key_ = 0;
  PortWatch ports_;
  CmHub cm_;
  CommService service_;
  Channels channels_;
  InboundHandshakes inbound_;
  Dialer dialer_;
  Connector connector_;
  Acceptor acceptor_;
  WaitLog wait_log_;
  std::int64_t path_log_due_ns_ = PathLog::kNever;  // the timer
  ListenerSlots listener_slots_;
};

}  // namespace beeline
