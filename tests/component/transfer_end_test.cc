// SPDX-License-Identifier: Apache-2.0
//
// Faults of a path that end a comm although both ends could recover.
#include <climits>
#include <string>

#include "tests/component/device_rig.h"
#include "tests/component/resume_faults.h"
#include "tests/component/resume_traffic.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

// Moves data until an end has failed, or this many messages have arrived. Returns why it failed.
std::string move_data(TransferRig& rig, int messages = INT_MAX) {
  Storage from = rig.storage(kLargest, 0x44);
  Storage into = rig.storage(kLargest);
  const ReceiveBuffer buffer = {
      .data = into.data(), .capacity = kLargest, .tag = 0, .memory = &into.handle()};
  Request* send = nullptr;
  Request* receive = nullptr;
  const auto advance = [](Request*& request, const auto& begin) {
    if (request == nullptr) {
      const Result<Request*> made = begin();
      request = made ? *made : nullptr;
      return false;
    }
    const Result<bool> done = test_once(*request, nullptr);
    if (!done || !*done) return false;
    request = nullptr;
    return true;
  };
  std::string why;
  run_until(rig, [&] {
    (void)advance(send, [&] { return isend(rig.sender(), from, kLargest, 0); });
    messages -= advance(receive, [&] { return irecv(rig.receiver(), {&buffer, 1}); }) ? 1 : 0;
    why = rig.sender_link().failure + rig.receiver_link().failure;
    return messages == 0 || !why.empty();
  });
  return why;
}

}  // namespace

// It may be a fault of a program, which would follow the data to the other path.
TEST_CASE("end: a message that fails on one path after the other, for no reason of a link",
          "[component][transfer]") {
  TransferRig rig({.paths = 2, .recovers = true});
  const PollHook fault(rig.sender(), [](ibv_cq* cq, int most, ibv_wc* completions) {
    const int found = PollHook::real(cq, most, completions);
    for (int i = 0; i < found; ++i) completions[i].status = IBV_WC_REM_OP_ERR;
    return found;
  });
  const std::string why = move_data(rig);
  INFO(why);
  CHECK(why.find("refused the request, as devices do") != std::string::npos);
}

TEST_CASE("end: no end, if only one path refuses requests for no reason of a link",
          "[component][transfer]") {
  TransferRig rig({.paths = 2, .recovers = true});
  const PollHook fault(rig.sender(), without_acks(rig.sender(), 1, IBV_WC_REM_OP_ERR));
  CHECK(move_data(rig, 3).empty());
}

TEST_CASE("end: a device that refuses the requests of one queue pair after the other",
          "[component][transfer]") {
  TransferRig rig({.recovers = true});
  const PollHook fault(rig.sender(), [&rig](ibv_cq* cq, int most, ibv_wc* completions) {
    const int found = PollHook::real(cq, most, completions);
    const bool is_used = cq == rig.sender().paths()[0].resources->queues.cq.get();
    for (int i = 0; is_used && i < found; ++i) {
      if (completions[i].status == IBV_WC_SUCCESS) completions[i].status = IBV_WC_LOC_QP_OP_ERR;
    }
    return found;
  });
  CHECK(move_data(rig).find("its device could not send") != std::string::npos);
  CHECK(rig.sender_link().discarded.size() == 3);  // former queue pairs
}

// A path that the connection manager has connected is not made anew.
TEST_CASE("end: the last path of iWARP", "[component][transfer]") {
  TransferRig rig({.paths = 2, .recovers = true, .by_cm = true});
  break_path(rig.sender(), 0);
  CHECK(move_data(rig, 3).empty());
  break_path(rig.sender(), 1);
  CHECK_FALSE(move_data(rig).empty());
}

TEST_CASE("end: neither device moves its queue pair to the error state", "[component][transfer]") {
  TransferRig rig({.recovers = true, .refuses_fences = true});
  const PollHook fault(rig.sender(), without_acks(rig.sender(), 0));
  CHECK(move_data(rig).find("the devices of neither end") != std::string::npos);
}

}  // namespace beeline::test
