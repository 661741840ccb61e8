// SPDX-License-Identifier: Apache-2.0
//
// A fake librdmacm within the process, with ids, listeners and events, between two given softnic
// devices. There can be only one at a time, since its functions find it through a global. The
// plugin moves the queue pairs itself, as it does on InfiniBand and RoCE, if the fake is not told
// to play iWARP.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugin/device/device.h"
#include "plugin/verbs/cm_api.h"

namespace beeline::test {

class FakeRdmacm {
 public:
  // The devices of listeners and of connecting ids, which a kernel would choose by address.
  FakeRdmacm(const Device& listening, const Device& connecting);
  FakeRdmacm(const FakeRdmacm&) = delete;
  FakeRdmacm& operator=(const FakeRdmacm&) = delete;
  ~FakeRdmacm();

  const verbs::CmApi& api() const noexcept { return api_; }

  // As the kernel does on iWARP, the fake moves both queue pairs to RTS when the connection is
  // accepted.
  using FindPair = ibv_qp* (*)(const ibv_context* device, std::uint32_t qpn);
  void move_queue_pairs(FindPair find) { find_pair_ = find; }

  // --- Faults to inject ---
  // Once, the step that `good` would end fails with `bad` and `status` instead.
  void fail_next(rdma_cm_event_type good, rdma_cm_event_type bad, int status);
  void refuse_listen(int times, int sys_errno);
  void take_device(const Device& connecting);
  // The id of this queue pair is told that the other end has closed the connection.
  void disconnect(const Device& device, std::uint32_t qpn);
  // An unknown peer connects to the last listener.
  void knock(const std::vector<std::uint8_t>& private_data);

  // --- Counters ---
  std::size_t ids() const;
  std::size_t rejects() const;
  std::size_t disconnects() const;
  int unacknowledged() const;

 private:
  struct Channel {
    rdma_event_channel raw{};  // first, since callers have a pointer to it
    std::deque<rdma_cm_event*> events;
  };
  struct Id {
    rdma_cm_id raw{};  // first
    const Device* device = nullptr;
    Id* peer = nullptr;
    std::uint16_t port = 0;
    std::uint32_t qpn = 0;
    std::vector<std::uint8_t> private_data;
  };
  struct Fault {
    rdma_cm_event_type good;
    rdma_cm_event_type bad;
    int status;
  };

  static FakeRdmacm& current();
  static Id& of(rdma_cm_id* raw) { return *reinterpret_cast<Id*>(raw); }
  static Channel& of(rdma_event_channel* raw) { return *reinterpret_cast<Channel*>(raw); }

  rdma_event_channel* create_channel();
  void destroy_channel(Channel& channel);
  int get_event(Channel& channel, rdma_cm_event** event);
  int create_id(rdma_event_channel* channel, rdma_cm_id** raw);
  Id& make_id(rdma_event_channel* channel);
  int destroy_id(Id& id);
  int listen(Id& id);
  int connect(Id& id, const rdma_conn_param& param);
  int accept(Id& id, const rdma_conn_param& param);
  void request(Id* from, std::vector<std::uint8_t> data);
  void leave(Id& id);
  void tell(Id& id, rdma_cm_event_type type, Id* listener = nullptr);
  int next_state(Id& id, ibv_qp_attr& attr, int& mask);
  void move_to_rts(Id& id);
  void choose_device(Id& id, const Device& device);

  mutable std::mutex mutex_;
  verbs::CmApi api_;
  const Device* listening_;
  const Device* connecting_;
  FindPair find_pair_ = nullptr;  // null: the plugin moves them
  std::vector<Fault> faults_;
  int listen_refusals_ = 0;
  int listen_errno_ = 0;
  std::uint16_t last_port_ = 4000;
  Id* listener_ = nullptr;
  std::set<Id*> ids_;
  std::size_t rejects_ = 0;
  std::size_t disconnects_ = 0;
  int unacknowledged_ = 0;
};

}  // namespace beeline::test
