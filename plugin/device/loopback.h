// SPDX-License-Identifier: Apache-2.0
//
// A queue pair that is connected to itself: READs and WRITEs that go through the NIC and stay in
// this process. A READ of GPU memory pushes what the NIC has written ahead of it; a WRITE and a
// READ show whether the NIC reaches that memory at all.
//
// Threads: as its queue pair and its completion queue.
#pragma once

#include <cstdint>

#include "plugin/device/device.h"
#include "plugin/device/gid_choice.h"
#include "plugin/verbs/create.h"

namespace beeline {

struct LoopbackPlan {
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;       // where completions go
  std::uint32_t depth = 1;    // work requests under way
  GidPolicy gid = {};         // as for connections
  int pkey_index = -1;        // as for connections; -1: the first full membership
  std::uint8_t timeout = 14;  // 4.096 us * 2^timeout, and so often again:
  std::uint8_t retry_count = 7;
};

class Loopback {
 public:
  // kUnsupported on iWARP, whose queue pairs are connected by TCP.
  static Outcome<Loopback> make(const Device& device, const LoopbackPlan& plan);

  struct Transfer {
    ibv_wr_opcode opcode = IBV_WR_RDMA_READ;
    void* local = nullptr;
    std::uint32_t lkey = 0;
    std::uint64_t remote = 0;
    std::uint32_t rkey = 0;
    std::uint32_t bytes = 0;
    std::uint64_t id = 0;
  };
  // 0, or what the device says. Every transfer completes with a completion of its own.
  int post(const Transfer& transfer) const noexcept;

 private:
  explicit Loopback(verbs::Qp qp) noexcept : qp_(std::move(qp)) {}

  verbs::Qp qp_;
};

}  // namespace beeline
