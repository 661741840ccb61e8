// SPDX-License-Identifier: Apache-2.0
//
// Connections that must not be established: the listener is gone, or the handle is invalid. Each
// attempt ends soon, and other connections are not disturbed.
#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// Calls connect until it fails. It must not succeed.
void must_be_refused(const Session& session, Handle& handle) {
  wait_until(
      [&] {
        const Attempt attempt = at_once([&] { return try_connect(session, 0, handle); });
        BL_MUST(attempt.comm == nullptr);
        return attempt.result != ncclSuccess;
      },
      "connect to fail");
  BL_MUST_SUCCEED(session.net().close_send(nullptr));
}

}  // namespace

TEST_CASE("refusal: a listener whose process is gone refuses", "[contract][refusal]") {
  if (!kProcessesWork) return;
  run_processes({[&](Peer& peer) {
                   const Session session;
                   Handle handle = peer.receive<Handle>(1);
                   peer.kill(1);
                   must_be_refused(session, handle);
                 },
                 [&](Peer& peer) {
                   const Session session;
                   Handle handle{};
                   const Comm listener = listen(session, 0, &handle);
                   peer.send(0, handle);
                   peer.meet();
                 }});
}

TEST_CASE("refusal: an invalid handle is refused with a warning", "[contract][refusal]") {
  const auto fill = GENERATE(as<uint8_t>{}, 0x00, 0xFF, 0xA5);
  CAPTURE(fill);
  run_alone([&] {
    const Session session;
    Handle handle{};
    handle.bytes.fill(fill);
    must_be_refused(session, handle);
    BL_MUST(has_warned({"handle"}));
  });
}

TEST_CASE("refusal: a handle with any byte changed does no harm", "[contract][refusal]") {
  run_alone([&] {
    const Session session;
    Handle good{};
    Comm listener = listen(session, 0, &good);
    std::vector<Handle> handles(good.bytes.size(), good);
    for (size_t i = 0; i < handles.size(); ++i) {
      handles[i].bytes[i] = static_cast<uint8_t>(handles[i].bytes[i] ^ (1U << (i % 8)));
      for (int turn = 0; turn < 3; ++turn) {
        const Attempt attempt = at_once([&] { return try_connect(session, 0, handles[i]); });
        if (attempt.result != ncclSuccess) break;
        if (attempt.comm == nullptr) continue;
        Comm(session.net(), CommKind::kSend, attempt.comm).close();
        break;
      }
    }
    // All of these connects are abandoned halfway, as by an abort. A valid one must still succeed.
    listener.close();
    const Link link = link_to_self(session);
    must_carry(session.net(), link, 1);
  });
}
