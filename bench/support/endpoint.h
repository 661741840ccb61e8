// SPDX-License-Identifier: Apache-2.0
//
// One end of a reliable connection, in plain verbs: a device, ordinary memory that is registered
// with it, and a queue pair that writes to the peer's memory by RDMA. It works on any NIC. Failures
// throw (tests/support/must.h).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/peer_group.h"

namespace beeline::bench {

// The maximum number of writes in flight.
inline constexpr uint32_t kWritesAtATime = 64;
inline constexpr uint32_t kInlineBytes = 64;

// The data of an endpoint that its peer needs.
struct EndpointInfo {
  uint32_t qp_num = 0;
  uint16_t lid = 0;
  ibv_gid gid{};
  uint64_t address = 0;
  uint32_t rkey = 0;
};

// Positions are offsets into the registered memory of each end.
struct Write {
  size_t from = 0;
  size_t to = 0;
  size_t bytes = 0;
  unsigned flags = IBV_SEND_SIGNALED;
};

class Endpoint {
 public:
  // Opens a device by name and registers `bytes` of heap memory with it.
  Endpoint(const std::string& device, size_t bytes);

  void connect(const EndpointInfo& peer);
  // The same for another queue pair of this device. Only the address and the queue pair number of
  // the info are used.
  void connect(ibv_qp* qp, const EndpointInfo& peer);
  // The same between two processes; each passes the rank of the other.
  void connect(test::Peer& line, size_t other);

  std::byte* memory() noexcept { return memory_.data(); }
  const EndpointInfo& info() const noexcept { return info_; }
  const EndpointInfo& peer() const noexcept { return peer_; }
  uint32_t gid_index() const noexcept { return gid_index_; }

  void post(const Write& write);
  // Polls up to `most` completions. Returns their number.
  size_t poll(size_t most = kWritesAtATime);
  void wait_for(size_t completions);

  // For measurements of single calls.
  ibv_qp* qp() const noexcept { return qp_.get(); }
  ibv_cq* cq() const noexcept { return cq_.get(); }
  ibv_pd* pd() const noexcept { return pd_.get(); }

 private:
  template <auto Free>
  struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
      Free(object);
    }
  };

  void choose_gid();
  void to_init(ibv_qp* qp);
  void to_rtr(ibv_qp* qp, const EndpointInfo& peer);
  void to_rts(ibv_qp* qp);

  // In the order of creation; destroyed in reverse.
  std::vector<std::byte> memory_;
  std::unique_ptr<ibv_context, Freed<ibv_close_device>> context_;
  std::unique_ptr<ibv_pd, Freed<ibv_dealloc_pd>> pd_;
  std::unique_ptr<ibv_mr, Freed<ibv_dereg_mr>> mr_;
  std::unique_ptr<ibv_cq, Freed<ibv_destroy_cq>> cq_;
  std::unique_ptr<ibv_qp, Freed<ibv_destroy_qp>> qp_;
  ibv_port_attr port_{};
  uint32_t gid_index_ = 0;
  EndpointInfo info_;
  EndpointInfo peer_;
};

}  // namespace beeline::bench
