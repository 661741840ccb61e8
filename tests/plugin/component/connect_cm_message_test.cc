// SPDX-License-Identifier: Apache-2.0
//
// The first message over a queue pair that librdmacm has connected, and the answer to it.
#include <chrono>
#include <string>

#include "tests/plugin/component/connect_cm_rig.h"

using namespace beeline;
using namespace beeline::test;

TEST_CASE("cm: the connecting end waits for the answer to its first message",
          "[component][connect]") {
  CmRig rig;
  const bool is_iwarp = GENERATE(false, true);
  if (is_iwarp) rig.play_iwarp();
  CmVerbs::hold_completions();
  Ticket ticket;
  Listener* const listener = must(rig.a->listen(rig.here_only, ticket.handle()));
  CommPair comm;
  const auto connect = [&] {
    if (comm.sender == nullptr) comm.sender = must(rig.b->connect(rig.there_only, ticket.handle()));
    return comm.sender != nullptr;
  };
  // Its message has completed, and it goes on polling.
  wait_for([&] { return connect() || CmVerbs::further_polls() >= 5; }, "further polls");
  CHECK(comm.sender == nullptr);
  CmVerbs::release_completions();
  wait_for(
      [&] {
        if (comm.receiver == nullptr) comm.receiver = must(rig.a->accept(*listener));
        return connect() && comm.receiver != nullptr;
      },
      "a comm");
  rig.a->close(listener);
  CHECK_FALSE(has_completions(*comm.sender));
  CHECK_FALSE(has_completions(*comm.receiver));
  prove_write(*comm.receiver, *comm.sender);
}

TEST_CASE("cm: on iWARP, zero bytes are written until the first message is answered",
          "[component][connect]") {
  CmRig rig;
  rig.play_iwarp();
  CmVerbs::hold_completions(3);  // the peer reads its connection when the third write arrives
  const LogCapture log;
  const CommPair comm = rig.join();
  INFO(log.all_text());
  CHECK(CmVerbs::writes() >= 3);
  CHECK(log.has("; the first message was answered after " + std::to_string(CmVerbs::writes()) +
                " writes of zero bytes"));
  CHECK_FALSE(has_completions(*comm.sender));
  CHECK_FALSE(has_completions(*comm.receiver));
  prove_write(*comm.receiver, *comm.sender);
}

TEST_CASE("cm: the deadline ends the wait for the first message, and for the answer to it",
          "[component][connect]") {
  CmRig rig;
  const bool is_listener = GENERATE(true, false);
  ControlOptions hasty = cm_options(true, &rig.library);
  hasty.connect_timeout = std::chrono::milliseconds(200);
  (is_listener ? rig.a : rig.b) = std::make_unique<ControlPlane>(hasty, *rig.table);
  CmVerbs::hold_completions();
  const LogCapture log;
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has(std::string("did not finish within 200 ms: it was waiting for ") +
                (is_listener ? "" : "the answer to ") + "the first message over the new"));
  CHECK(CmVerbs::writes() == 0);  // not needed but on iWARP
}
