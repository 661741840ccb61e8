// SPDX-License-Identifier: Apache-2.0
//
// A verbs device on simulated time: reliable connected queue pairs, completion queues and memory
// regions. It checks what a device checks (states, keys, bounds, rights), retries and gives up as a
// device does, and refuses or lies where a hazard says so.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/verbs/api.h"
#include "tests/plugin/simulation/network.h"
#include "tests/plugin/simulation/payload.h"

namespace beeline::simulation {

class Nics;
class Nic;

// Faults of a device.
struct Hazards {
  bool refuses_error_state = false;            // it moves no queue pair to ERROR, and goes on
  bool fences_falsely = false;                 // it says that it has, and goes on
  bool swallows_receives = false;              // flushed receives have no completion
  bool refuses_posts = false;                  // posts fail with EIO
  bool refuses_data = false;                   // as if no buffer was registered
  bool lacks_immediates = false;               // it knows no writes with them
  bool refuses_queues = false;                 // no queue pair can be made
  bool answers_no_reads = false;               // of memory behind it
  bool discards = false;                       // acknowledges what arrives and places nothing
  bool loses_completions = false;              // receives that arrive complete nothing
  ibv_wc_status next_status = IBV_WC_SUCCESS;  // of the next send that completes
};

struct NicContext : ibv_context {
  Nic* nic = nullptr;
};

struct NicCq : ibv_cq {
  std::deque<ibv_wc> entries;
  std::size_t most = 0;
};

struct NicRegion : ibv_mr {
  Nic* nic = nullptr;
  unsigned access = 0;
};

// Bytes on their way: of a message of the application, or of the plugin's own memory.
struct Content {
  bool is_payload = false;
  Piece piece;
  std::vector<std::byte> bytes;
};

struct SendEntry {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  bool is_signaled = false;
  bool is_inline = false;
  std::uint32_t imm = 0;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  ibv_sge local = {};
  Content copied;  // if it is inline
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 1;
  bool is_answered = false;  // a READ: its data has come
};

struct NicQp : ibv_qp {
  Nic* nic = nullptr;
  NicCq* sends_to = nullptr;
  NicCq* receives_to = nullptr;
  ibv_qp_cap cap = {};
  unsigned access = 0;             // of the peer
  bool is_falsely_fenced = false;  // it is in ERROR, and places what comes
  std::uint32_t peer_qpn = 0;
  Network::Port peer_port = 0;
  // The requester.
  std::deque<SendEntry> sends;
  std::size_t transmitted = 0;  // of `sends`
  std::uint32_t next_psn = 0;   // of the next work request
  std::uint32_t unacked_psn = 0;
  std::int64_t timeout_ns = 0;
  unsigned retries = 0;
  unsigned retries_left = 0;
  std::int64_t progress_ns = 0;
  bool has_timer = false;
  bool waits_for_receive = false;
  // The responder.
  std::deque<ibv_recv_wr> receives;
  std::deque<ibv_sge> receive_places;
  std::uint32_t expected_psn = 0;
  bool has_complained = false;
  std::deque<ibv_wc> arrived;  // whose completions are about to come
};

// One device with one port.
class Nic {
 public:
  Nic(Nics& nics, std::uint32_t number, std::string name, std::uint32_t mbps);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  std::uint32_t number() const noexcept { return number_; }
  const std::string& name() const noexcept { return name_; }
  Network::Port port() const noexcept { return port_; }
  Hazards& hazards() noexcept { return hazards_; }
  bool is_removed() const noexcept { return is_removed_; }
  // Packets under way are lost, and all calls fail. A device that has returned is another object.
  void remove() noexcept;
  bool is_active() const noexcept;
  std::array<std::uint8_t, 16> gid() const noexcept { return gid_; }
  // Its process has ended: no packet reaches its queue pairs any more.
  void drop_queues() noexcept;
  // The port gets another address.
  void change_gid() noexcept;
  // Called when a completion has come. May be empty.
  void set_on_completion(std::function<void()> call) { on_completion_ = std::move(call); }
  ibv_context* open();
  // Objects that were made and not destroyed: queue pairs, completion queues and regions.
  std::size_t objects() const noexcept { return objects_; }
  // In its completion queues.
  std::size_t completions() const noexcept { return completions_; }

 private:
  friend class Nics;
  friend struct NicVerbs;

  struct Packet;

  void transmit(NicQp& qp);
  void transmit_one(NicQp& qp, SendEntry& entry, std::uint32_t index);
  Content read_local(const SendEntry& entry, std::uint64_t offset, std::uint32_t length) const;
  void arrive(NicQp& qp, const Packet& packet);
  void take_next(NicQp& qp, const Packet& packet);
  void answer_read(NicQp& qp, const Packet& packet);
  bool place(std::uint64_t address, const Content& content);
  void acknowledge(NicQp& qp, std::uint32_t psn);
  template <class Answer>
  void send_answer(NicQp& qp, Answer&& answer, std::uint64_t bytes = 0);
  void on_acknowledged(NicQp& qp, std::uint32_t psn);
  void on_read_answered(NicQp& qp, std::uint32_t psn, const Content& content);
  void repeat_from(NicQp& qp, std::uint32_t psn);
  void start_timer(NicQp& qp);
  void on_timer(NicQp& qp);
  void complete_send(NicQp& qp, const SendEntry& entry, ibv_wc_status status);
  void complete_receive(NicQp& qp, const Packet& packet, std::uint32_t bytes);
  void push(NicCq& cq, const ibv_wc& entry);
  void fail_first(NicQp& qp, ibv_wc_status status);
  void flush(NicQp& qp);
  void complete_flushed(NicQp& qp);
  const NicRegion* region_of(std::uint32_t key, std::uint64_t address,
                             std::uint64_t length) const noexcept;

  Nics& nics_;
  std::uint32_t number_;
  std::string name_;
  Network::Port port_;
  std::array<std::uint8_t, 16> gid_{};
  Hazards hazards_;
  bool is_removed_ = false;
  std::function<void()> on_completion_;
  std::vector<std::unique_ptr<NicContext>> contexts_;
  std::size_t objects_ = 0;
  std::size_t completions_ = 0;
};

// All devices of one world.
class Nics {
 public:
  Nics(Agenda& agenda, Network& network, Payload& payload);

  Nic& add(std::string name, std::uint32_t mbps);
  static const verbs::Api& api() noexcept;
  // Null if there is none with this number, or its process has ended.
  NicQp* find_qp(std::uint32_t qpn) noexcept {
    return qpn - kFirstQpn < qps_.size() ? qps_[qpn - kFirstQpn] : nullptr;
  }
  // Of all devices: the objects that were made and not destroyed.
  std::size_t objects() const noexcept;
  // Why a promise was broken; empty: none was.
  const std::string& violation() const noexcept { return violation_; }
  void violate(std::string why);
  // From now on nothing fails any more, and everything that was lost has been sent again.
  void set_calm() noexcept { is_calm_ = true; }

 private:
  friend class Nic;
  friend struct NicVerbs;

  static constexpr std::uint32_t kFirstQpn = 0x11;
  static constexpr std::uint32_t kFirstKey = 0x107;
  static constexpr std::uint32_t kKeyStep = 7;

  Nic* find_nic(const std::array<std::uint8_t, 16>& gid) noexcept;

  Agenda& agenda_;
  Network& network_;
  Payload& payload_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::vector<NicQp*> qps_;                          // by number; null: destroyed
  std::vector<std::unique_ptr<NicRegion>> regions_;  // by key; null: deregistered
  bool is_calm_ = false;
  std::string violation_;
};

}  // namespace beeline::simulation
