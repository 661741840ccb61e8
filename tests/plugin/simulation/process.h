// SPDX-License-Identifier: Apache-2.0
//
// A process with the plugin in it, on a host of its own: its devices, what the control thread does,
// and its comms. The control thread is a party with its own time: it carries out one order after
// the other, and can be stopped.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/connect/channel/link_table.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/comm_service.h"
#include "plugin/device/standby_devices.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/repair/peer_silence.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/registered_buffers.h"
#include "plugin/wire/message_frame.h"
#include "tests/plugin/simulation/nic.h"

namespace beeline::simulation {

class Process;

// Both directions of the control channel between two processes. Nothing that was sent over TCP is
// lost while the connection stands. A cut loses what is under way.
class Channel {
 public:
  Channel(Agenda& agenda, Process& one, Process& other, const PeerSilence::Limits& limits);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  class End final : public MessageSink {
   public:
    void send(const wire::Bytes& frame) noexcept override;
    bool is_open() noexcept override { return channel->is_connected(); }

    Process* process = nullptr;
    End* peer = nullptr;
    Channel* channel = nullptr;
    LinkTable links;
    bool was_lost = false;
    bool is_mute = false;  // what it sends waits
    std::int64_t last_arrival_ns = 0;
    std::vector<wire::Bytes> waiting;
    PeerSilence silence;
  };

  End& end_of(const Process& process) noexcept {
    return ends_[0].process == &process ? ends_[0] : ends_[1];
  }
  bool is_connected() const noexcept { return is_connected_; }
  void cut();
  void restore();
  void set_mute(const Process& process, bool is_mute);
  // The process has ended: the peer's kernel says so.
  void on_death(const Process& process);

 private:
  void carry(End& from, const wire::Bytes& frame);
  void look_at_silence(End& end, std::uint64_t cut);
  PeerSilence::Facts facts_about(End& end);

  Agenda& agenda_;
  PeerSilence::Limits limits_;
  std::array<End, 2> ends_;
  bool is_connected_ = true;
  std::uint64_t cuts_ = 0;
};

struct ProcessOptions {
  std::string host;
  std::vector<Nic*> nics = {};
  const ControlOptions* control = nullptr;
  std::uint64_t seed = 0;
};

class Process final : public Timers, public PortSource, public MrCaches {
 public:
  Process(Agenda& agenda, Nics& nics, const ProcessOptions& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  const std::string& host() const noexcept { return host_; }
  const std::shared_ptr<ControlMailbox>& mailbox() const noexcept { return mailbox_; }
  CommService& service() noexcept { return *service_; }
  std::span<const Device> devices() const noexcept { return devices_; }
  const StandbyDevices& standbys() const noexcept { return *standbys_; }
  RegistrationMeans& means() noexcept { return means_; }
  // Whether completions wait that the plugin has not polled yet.
  bool has_completions() const noexcept;
  // The device that has this number now.
  Nic& nic(std::size_t index) noexcept { return *nics_of_[index]; }

  // Called when a device has written or completed something.
  void set_wake(std::function<void()> wake);

  // --- The seams of the plugin ---
  void at(std::int64_t when_ns, std::function<void()> call) override;
  Result<const PortFacts*> facts(const Device& device) override;
  Result<MrCache*> cache(const Device& device) override;

  void add_channel(Channel& channel) { channels_.push_back(&channel); }
  // Frames of the peer, in order.
  void receive(Channel::End& end, const wire::Bytes& frame);
  // Takes what NCCL's threads have left in the mailbox.
  void look_for_orders();

  // --- What happens to the host ---
  // A port has changed: the process gets the event after this time.
  void tell(std::size_t index, verbs::EventKind kind, std::int64_t delay_ns);
  void remove(std::size_t index, std::int64_t event_delay_ns);
  void bring_back(std::size_t index);
  void stop_until(std::int64_t when_ns);
  bool is_stopped() const noexcept { return agenda_.now() < stopped_until_ns_; }
  std::int64_t stopped_until_ns() const noexcept { return stopped_until_ns_; }
  // The process ends without a word. Its queue pairs are gone at once.
  void kill();
  bool is_dead() const noexcept { return is_dead_; }
  // How long the control thread takes to make or to connect a queue pair.
  void set_order_time(std::int64_t time_ns) noexcept { order_time_ns_ = time_ns; }

 private:
  friend class Channel;

  void look_for_messages();
  // Makes the call as the control thread, once that runs.
  void control(std::int64_t when_ns, std::function<void()> call);
  void next_order();
  std::vector<std::shared_ptr<CommLink>> links_on(const DeviceContext& context);
  void on_event(const Device& device, verbs::EventKind kind);
  static Device describe(const Nic& nic, int index, DeviceContext& context);

  Agenda& agenda_;
  Nics& all_nics_;
  std::string host_;
  Draws draws_;
  std::vector<Nic*> nics_of_;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<Device> devices_;
  std::deque<Device> returned_;
  std::optional<StandbyDevices> standbys_;
  std::map<const DeviceContext*, std::unique_ptr<MrCache>> caches_;
  LeftOutRails left_out_;
  RegistrationMeans means_;
  PortFacts facts_;
  std::shared_ptr<ControlMailbox> mailbox_;
  std::unique_ptr<CommService> service_;
  Orders orders_;
  std::deque<LinkOrder> waiting_;  // for the control thread
  bool is_working_ = false;
  std::vector<Channel*> channels_;
  std::function<void()> wake_;
  std::int64_t stopped_until_ns_ = 0;
  std::vector<std::function<void()>> postponed_;  // of the control thread, while it is stopped
  std::int64_t order_time_ns_ = 200 * kUs;
  bool is_dead_ = false;
};

}  // namespace beeline::simulation
