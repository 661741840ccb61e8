// SPDX-License-Identifier: Apache-2.0
//
// The state transitions of a reliable connected QP: RESET -> INIT -> RTR -> RTS, and to ERROR. No
// function sleeps or retries. If the device could not resolve the peer's address yet, the error is
// kTimeout, and the caller may repeat the call.
#pragma once

#include <cstdint>

#include "plugin/verbs/handles.h"

namespace beeline::verbs {

inline constexpr std::uint32_t kPsnMask = 0xffffff;

// 24 random bits, so that a packet of an earlier connection with the same QP number is not taken
// for one of this connection.
std::uint32_t random_psn() noexcept;

struct InitParams {
  std::uint8_t port = 1;  // of the local device
  std::uint16_t pkey_index = 0;
  unsigned access = 0;  // IBV_ACCESS_REMOTE_*: the peer's rights on this QP
};

// The address vector of the peer.
struct PathParams {
  std::uint8_t port = 1;   // of the local device
  std::uint16_t dlid = 0;  // InfiniBand
  std::uint8_t sl = 0;
  bool is_global = false;  // always on RoCE; on InfiniBand if there is a router between the ends
  ibv_gid dgid = {};
  std::uint8_t sgid_index = 0;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;  // 20 bits; RoCE v2 derives the UDP source port from it
};

struct RtrParams {
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t dest_qpn = 0;
  std::uint32_t rq_psn = 0;  // the peer's sq_psn
  PathParams path = {};
  std::uint8_t max_dest_rd_atomic = 1;  // outstanding READs of the peer
  std::uint8_t min_rnr_timer = 12;      // 0.64 ms
};

struct RtsParams {
  std::uint32_t sq_psn = 0;
  std::uint8_t timeout = 20;  // 4.096 us * 2^timeout; 0: no timeout
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;  // 7: no limit
  std::uint8_t max_rd_atomic = 1;
};

Status to_init(const Qp& qp, const InitParams& params);
Status to_rtr(const Qp& qp, const RtrParams& params);
Status to_rts(const Qp& qp, const RtsParams& params);

// Enhanced connection establishment (ECE): the vendor features that both ends use. It is queried in
// RESET or INIT, and set before RTR. kUnsupported if the library, the driver or the device has
// none; the ends then connect without it.
Result<ibv_ece> query_ece(const Qp& qp);
Status set_ece(const Qp& qp, ibv_ece ece);

}  // namespace beeline::verbs
