// SPDX-License-Identifier: Apache-2.0
//
// The objects of most tests of shared receive queues.
#pragma once

#include <cstdint>

#include "tests/support/verbs_extras.h"

namespace beeline::test {

inline constexpr std::size_t kBig = 4u << 20;
inline constexpr Wire kQuick{.timeout = 14, .retry_cnt = 1, .min_rnr_timer = 1};

// A sender on softnic0, and a receiver with a shared receive queue on softnic1.
struct SrqScene {
  explicit SrqScene(std::uint32_t depth = 16, const Wire& wire = kQuick, double clock_scale = 1.0)
      : fabric(clock_scale), a("softnic0"), b("softnic1"), srq(make_srq(b.pd.get(), depth)) {
    qp = make_qp_on(b, srq.get());
    connect_both(a.qp, qp.get(), wire);
  }

  void send(std::uint64_t wr_id, std::size_t size = 64) {
    BL_MUST_OK(post(a.qp, send_work(from.part(0, size), wr_id)));
    must_complete(a.send_cq.get(), wr_id);
  }
  void post_receives(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      BL_MUST_OK(post(srq.get(), recv_work(into.all(), i)));
    }
  }

  TestFabric fabric;
  Endpoint a;
  Nic b;
  SrqPtr srq;
  QpPtr qp;
  Buffer from = a.buffer(256);
  Buffer into{b.pd.get(), 256};
};

}  // namespace beeline::test
