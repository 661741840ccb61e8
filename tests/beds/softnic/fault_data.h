// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the fault tests: a timeout that is measured by the NIC's own timers, so that "nothing
// happens" is decided only after the NIC had enough time, however slow the machine is.
#pragma once

#include "tests/support/verbs_fixture.h"

namespace beeline::test {

// With a clock_scale of 0.01 these end in 1.3 ms; the watchdog below takes 86 ms.
inline constexpr double kFastClock = 0.01;
inline const Wire kImpatientWire{.timeout = 14, .retry_cnt = 1};

// A connection to a peer that never answers. When its long timeouts are over, those of a
// kImpatientWire would have ended many times, and the engine has run at least as often.
class Watchdog {
 public:
  explicit Watchdog(const std::string& device) : asker_(device), nobody_(device) {
    connect(asker_.qp, address_of(nobody_.qp), {.timeout = 18, .retry_cnt = 7});
    BL_MUST_OK(post(asker_.qp, nothing_work()));
  }

  bool has_expired() {
    ibv_wc wc{};
    expired_ = expired_ || ibv_poll_cq(asker_.send_cq.get(), 1, &wc) == 1;
    return expired_;
  }

 private:
  Endpoint asker_;
  Endpoint nobody_;
  bool expired_ = false;
};

// Polls at most `count` completions until the watchdog's timeout is over.
inline std::vector<ibv_wc> poll_guarded(ibv_cq* cq, std::size_t count, const std::string& device) {
  Watchdog watchdog(device);
  std::vector<ibv_wc> done;
  wait_until(
      [&] {
        ibv_wc wc{};
        if (ibv_poll_cq(cq, 1, &wc) == 1) done.push_back(wc);
        return done.size() == count || watchdog.has_expired();
      },
      "completions or the watchdog");
  return done;
}

inline bool has_all(const std::vector<ibv_wc>& done, std::size_t count, ibv_wc_status status) {
  for (const ibv_wc& wc : done) {
    if (wc.status != status) return false;
  }
  return done.size() == count;
}

}  // namespace beeline::test
