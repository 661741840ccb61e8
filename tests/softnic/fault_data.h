// SPDX-License-Identifier: Apache-2.0
//
// For tests of faults: a clock that goes by what the NIC does, so that "nothing happens" is said
// after the NIC has had its time, however slow the machine.
#pragma once

#include "tests/support/verbs_fixture.h"

namespace beeline::test {

// On a clock a hundred times faster these end in 1.3 ms; the watchdog below takes 86 ms.
inline constexpr double kFastClock = 0.01;
inline const Wire kImpatientWire{.timeout = 14, .retry_cnt = 1};

// A connection of its own to a peer that never answers. When its long timers have run out, so have
// those of every kImpatientWire, many times over, and the engine has come by at least as often.
class Watchdog {
 public:
  explicit Watchdog(const std::string& device) : asker_(device), nobody_(device) {
    connect(asker_.qp, address_of(nobody_.qp), {.timeout = 18, .retry_cnt = 7});
    BL_MUST_OK(post(asker_.qp, nothing_work()));
  }

  bool expired() {
    ibv_wc wc{};
    expired_ = expired_ || ibv_poll_cq(asker_.send_cq.get(), 1, &wc) == 1;
    return expired_;
  }

 private:
  Endpoint asker_;
  Endpoint nobody_;
  bool expired_ = false;
};

// The completions that come before the watchdog barks, at most `count`.
inline std::vector<ibv_wc> poll_guarded(ibv_cq* cq, std::size_t count, const std::string& device) {
  Watchdog watchdog(device);
  std::vector<ibv_wc> done;
  wait_until(
      [&] {
        ibv_wc wc{};
        if (ibv_poll_cq(cq, 1, &wc) == 1) done.push_back(wc);
        return done.size() == count || watchdog.expired();
      },
      "completions or the watchdog");
  return done;
}

inline bool all_have(const std::vector<ibv_wc>& done, std::size_t count, ibv_wc_status status) {
  for (const ibv_wc& wc : done) {
    if (wc.status != status) return false;
  }
  return done.size() == count;
}

}  // namespace beeline::test
