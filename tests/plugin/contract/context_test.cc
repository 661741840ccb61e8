// SPDX-License-Identifier: Apache-2.0
//
// Several communicators in one process: each has its own traffic class, and finalize of one cleans
// up its own unfinished connections and no others.
#include <algorithm>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

std::vector<Abi> abis_with_context() {
  std::vector<Abi> abis = every_abi();
  std::erase_if(abis, [](Abi abi) { return !has_context(abi); });
  return abis;
}

// From v10 on, a communicator may request a traffic class.
std::vector<Abi> abis_with_traffic_class() {
  std::vector<Abi> abis = every_abi();
  std::erase_if(abis, [](Abi abi) { return abi < Abi::kV10; });
  return abis;
}

// A connection that both ends have begun, and which may or may not be established.
struct Begun {
  explicit Begun(const Session& session) {
    listener = listen(session, 0, &handle);
    step(session);
  }

  void step(const Session& session) {
    if (!send) send = taken(session, CommKind::kSend, try_connect(session, 0, handle));
    if (!recv) recv = taken(session, CommKind::kRecv, try_accept(session, listener));
  }

  // Leaves the connection as an abort does. On a slow machine it may already be established: an end
  // that has its comm closes it.
  void abandon() {
    listener.abandon();
    send.close();
    recv.close();
  }

  static Comm taken(const Session& session, CommKind kind, const Attempt& attempt) {
    BL_MUST_SUCCEED(attempt.result);
    return {session.net(), kind, attempt.comm};
  }

  Handle handle{};
  Comm listener;
  Comm send;
  Comm recv;
};

Link finished(Begun& begun, const Session& session) {
  wait_until(
      [&] {
        begun.step(session);
        return begun.send && begun.recv;
      },
      "a connection");
  begun.listener.close();
  return {std::move(begun.send), std::move(begun.recv)};
}

// Whether the receiver has logged that the sender's traffic class takes precedence over its own.
bool is_overruled(const std::string& traffic_class) {
  return log_has(NCCL_LOG_INFO,
                 {"traffic class 104 is set on this host", traffic_class + " is used"});
}

void connect_and_close(const Session& sender, const Session& receiver) {
  Handle handle{};
  const Comm listener = listen(receiver, 0, &handle);
  link_between(sender, 0, handle, receiver, listener);
}

}  // namespace

TEST_CASE("context: finalize of one leaves another's connections alone, finished or not",
          "[contract][context]") {
  const Abi abi = GENERATE(from_range(some_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session lasting(abi);
    const Link link = link_to_self(lasting);
    Begun begun(lasting);
    {
      const Session brief(abi);
      Begun forgotten(brief);
      forgotten.abandon();
    }
    must_carry(lasting.net(), link, 1);
    must_carry(lasting.net(), finished(begun, lasting), 2);
    must_carry(lasting.net(), link_to_self(lasting), 3);
  });
}

TEST_CASE("context: two communicators at once can be connected to each other",
          "[contract][context]") {
  const Abi abi = GENERATE(from_range(some_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session one(abi);
    auto other = std::make_unique<Session>(abi);
    BL_MUST(!has_context(abi) || one.context() != other->context());
    Handle handle{};
    const Comm listener = listen(one, 0, &handle);
    must_carry(one.net(), link_between(*other, 0, handle, one, listener), 1);
    other.reset();
    must_carry(one.net(), link_to_self(one), 2);
  });
}

TEST_CASE("context: finalize cleans up after an abort", "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_context()));
  CAPTURE(abi);
  run_alone([&] {
    const Session lasting(abi);
    for (const int dev : {0, last_device(lasting)}) link_to_self(lasting, dev, dev);
    const Link lasting_link = link_to_self(lasting);  // keeps the control thread running
    Handle own{};
    Handle theirs{};
    const Levels before = levels();
    {
      Comm listener = listen(lasting, 0, &own);
      {
        const Session brief(abi);
        Comm forgotten = listen(brief, 0, &theirs);
        forgotten.abandon();
        BL_MUST(try_connect(brief, 0, own).comm == nullptr);
      }
      // The connect is told that nobody will accept it. The connect of `brief` may by now wait for
      // an accept here: closing this listener ends it.
      wait_until(
          [&] {
            const Attempt late = try_connect(lasting, 0, theirs);
            BL_MUST(late.comm == nullptr);
            return late.result != ncclSuccess;
          },
          "a refusal");
    }
    must_return_to(before);
    must_carry(lasting.net(), lasting_link, 1);
  });
}

TEST_CASE("context: finalize may be called twice, and with a context that init did not return",
          "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_context()));
  CAPTURE(abi);
  run_alone([&] {
    const Session lasting(abi);
    Net& net = lasting.net();
    Begun begun(lasting);
    void* context = nullptr;
    BL_MUST_SUCCEED(net.init(&context, nullptr, &keep_log_line));
    BL_MUST_SUCCEED(net.finalize(context));
    BL_MUST_SUCCEED(net.finalize(context));
    // After an init that failed, the context holds an arbitrary value.
    BL_MUST_SUCCEED(net.finalize(&context));
    BL_MUST_SUCCEED(net.finalize(reinterpret_cast<void*>(uintptr_t{1})));
    BL_MUST_SUCCEED(net.finalize(nullptr));
    must_carry(net, finished(begun, lasting), 1);
  });
}

TEST_CASE("context: a NULL context works", "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_context()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    BL_MUST_SUCCEED(net.init(nullptr, nullptr, &keep_log_line));
    Handle handle{};
    void* listener = nullptr;
    void* out = nullptr;
    void* in = nullptr;
    BL_MUST_SUCCEED(net.listen(nullptr, 0, handle.bytes.data(), &listener));
    wait_until(
        [&] {
          if (out == nullptr) {
            BL_MUST_SUCCEED(net.connect(nullptr, 0, handle.bytes.data(), &out, nullptr));
          }
          if (in == nullptr) BL_MUST_SUCCEED(net.accept(listener, &in, nullptr));
          BL_MUST_SUCCEED(net.finalize(nullptr));  // which ends nothing
          return out != nullptr && in != nullptr;
        },
        "a connection");
    BL_MUST_SUCCEED(net.close_listen(listener));
    must_carry(net, {{net, CommKind::kSend, out}, {net, CommKind::kRecv, in}}, 1);
  });
}

TEST_CASE("context: the requested traffic class is used", "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_traffic_class()));
  CAPTURE(abi);
  run_alone([&] {
    const Session receiver(Abi::kV12, 104);
    const Session silent(abi);
    connect_and_close(silent, receiver);
    BL_MUST(!log_has(NCCL_LOG_INFO, {"traffic class 104 is set on this host"}));
    const Session sender(abi, 106);
    connect_and_close(sender, receiver);
    BL_MUST(is_overruled("106"));
  });
}

TEST_CASE("context: an invalid traffic class is ignored, with one warning", "[contract][context]") {
  const Abi abi = GENERATE(Abi::kV10, Abi::kV12);  // connect passes it, or init
  const int wrong = GENERATE(256, -2, INT32_MAX, INT32_MIN);
  CAPTURE(abi, wrong);
  if (!kProcessesWork) return;  // a process warns once
  run_alone([&] {
    const Session receiver(Abi::kV12, 104);
    for (int i = 0; i < 2; ++i) {
      const Session sender(abi, wrong);
      connect_and_close(sender, receiver);
    }
    BL_MUST(find_log_lines(NCCL_LOG_WARN, {"traffic class"}).size() == 1);
    BL_MUST(!log_has(NCCL_LOG_INFO, {"traffic class 104 is set on this host"}));
  });
}
