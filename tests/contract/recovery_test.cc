// SPDX-License-Identifier: Apache-2.0
//
// BEELINE_RECOVERY: a connection with several NICs goes on without one that fails. These tests need
// a fabric with eight NICs on each host.
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>

#include "tests/contract/flow.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRounds = 60;
constexpr size_t kFaultAfter = 20;
constexpr size_t kAtOnce = 6;
constexpr size_t kBytesEach = 700'001;

void want_recovery(Peer&) {
  setenv("BEELINE_RAILS", "4", 1);
  setenv("BEELINE_RECOVERY", "1", 1);
  // The device reports after a fraction of a second that nothing is acknowledged.
  setenv("BEELINE_TIMEOUT", "12", 1);
  setenv("BEELINE_RETRY_CNT", "3", 1);
}

// A request and its buffer.
struct Transfer {
  std::unique_ptr<Buffer> buffer;
  Request request;
};

void send_all(Sender& end, const std::string& target, const std::string& fault) {
  std::deque<Transfer> under_way;
  for (size_t i = 0; i < kRounds; ++i) {
    if (i == kFaultAfter) disturb(target, fault);
    if (under_way.size() == kAtOnce) {
      under_way.front().request.finish();
      under_way.pop_front();
    }
    auto buffer = std::make_unique<Buffer>(end, kBytesEach);
    buffer->fill(0, kBytesEach, static_cast<uint32_t>(i));
    Request request = end.send(buffer->all());
    under_way.push_back({std::move(buffer), std::move(request)});
  }
  for (Transfer& one : under_way) one.request.finish();
}

void receive_all(Receiver& end) {
  std::deque<Transfer> under_way;
  const auto finish_oldest = [&] {
    under_way.front().request.finish();
    under_way.front().buffer->must_hold();
    under_way.pop_front();
  };
  for (size_t i = 0; i < kRounds; ++i) {
    if (under_way.size() == kAtOnce) finish_oldest();
    auto buffer = std::make_unique<Buffer>(end, kBytesEach);
    buffer->expect(0, kBytesEach, static_cast<uint32_t>(i));
    Request request = end.receive(buffer->all());
    under_way.push_back({std::move(buffer), std::move(request)});
  }
  while (!under_way.empty()) finish_oldest();
}

void must_have_lost_path(End& end) {
  BL_MUST(either_warns(end.peer, {"is out of use", "took over"}));
}

}  // namespace

TEST_CASE("recovery: every byte arrives although a NIC of several fails", "[contract][recovery]") {
  const Abi abi = GENERATE(Abi::kV8, Abi::kV12);
  const std::string target = GENERATE("h0/softnic1", "h1/softnic6");
  const std::string fault = GENERATE("down", "blackhole", "loss=100%");
  CAPTURE(abi, target, fault);
  run_flow(
      {abi, PeerMode::kProcesses}, want_recovery,
      [&](Sender& end) {
        send_all(end, target, fault);
        must_have_lost_path(end);
      },
      [](Receiver& end) {
        receive_all(end);
        must_have_lost_path(end);
      });
  disturb(target, "reset");
}
