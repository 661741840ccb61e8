// SPDX-License-Identifier: Apache-2.0
//
// A queue pair that is connected to itself, for READs and WRITEs through the NIC within this
// process. A READ of GPU memory flushes the NIC's earlier writes to it. A WRITE and a READ show
// whether the NIC can access that memory.
//
// Threads: the one that uses its queue pair and its completion queue.
#pragma once

#include <cstdint>

#include "plugin/device/agree.h"
#include "plugin/device/device.h"
#include "plugin/device/gid_choice.h"
#include "plugin/verbs/create.h"

namespace beeline {

struct LoopbackPlan {
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;       // for the completions
  std::uint32_t depth = 1;    // outstanding work requests
  GidPolicy gid = {};         // as for connections
  PkeyChoice pkey = {};       // as for connections; any: the first full membership
  std::uint8_t timeout = 14;  // 4.096 us * 2^timeout
  std::uint8_t retry_count = 7;
};

class Loopback {
 public:
  // kUnsupported on iWARP, whose queue pairs are connected through TCP.
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
  // 0 or an errno. Every transfer has a completion.
  int post(const Transfer& transfer) const noexcept;

 private:
  explicit Loopback(verbs::Qp qp) noexcept : qp_(std::move(qp)) {}

  verbs::Qp qp_;
};

}  // namespace beeline
