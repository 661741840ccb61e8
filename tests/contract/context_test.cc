// SPDX-License-Identifier: Apache-2.0
//
// Several communicators in one process: what each wishes, and that the end of one takes what it
// began and never finished, and nothing of the others.
#include <algorithm>

#include "tests/contract/flow.h"
#include "tests/contract/levels.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

std::vector<Abi> abis_with_context() {
  std::vector<Abi> abis = every_abi();
  std::erase_if(abis, [](Abi abi) { return !has_context(abi); });
  return abis;
}

// From v10 on, a communicator may wish for a traffic class.
std::vector<Abi> abis_with_wishes() {
  std::vector<Abi> abis = every_abi();
  std::erase_if(abis, [](Abi abi) { return abi < Abi::kV10; });
  return abis;
}

// A connection that both ends have begun; whether it is made yet is open.
struct Begun {
  explicit Begun(const Session& session) {
    listener = listen(session, 0, &handle);
    step(session);
  }

  void step(const Session& session) {
    if (!send) send = taken(session, CommKind::kSend, try_connect(session, 0, handle));
    if (!recv) recv = taken(session, CommKind::kRecv, try_accept(session, listener));
  }

  // As an abort leaves it. An end that is made by now, which takes a slow caller, is not begun any
  // more: whoever got it closes it.
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

// What the receiving end says when the sending one's wish goes before its own.
bool is_overruled(const std::string& wish) {
  return log_has(NCCL_LOG_INFO, {"traffic class 104 is wished here", wish + " is used"});
}

void connect_with_wishes(const Session& sender, const Session& receiver) {
  Handle handle{};
  Comm listener = listen(receiver, 0, &handle);
  Attempt out{};
  Attempt in{};
  wait_until(
      [&] {
        if (out.comm == nullptr) out = try_connect(sender, 0, handle);
        if (in.comm == nullptr) in = try_accept(receiver, listener);
        BL_MUST(out.result == ncclSuccess && in.result == ncclSuccess);
        return out.comm != nullptr && in.comm != nullptr;
      },
      "a connection");
  const Link link{{sender.net(), CommKind::kSend, out.comm},
                  {receiver.net(), CommKind::kRecv, in.comm}};
}

}  // namespace

TEST_CASE("context: the end of one leaves another's connections and what it has begun",
          "[contract][context]") {
  const Abi abi = GENERATE(from_range(main_abis()));
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

TEST_CASE("context: two at once have connections between them", "[contract][context]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session one(abi);
    auto other = std::make_unique<Session>(abi);
    BL_MUST(!has_context(abi) || one.context() != other->context());
    Handle handle{};
    Comm listener = listen(one, 0, &handle);
    Attempt out{};
    Attempt in{};
    wait_until(
        [&] {
          if (out.comm == nullptr) out = try_connect(*other, 0, handle);
          if (in.comm == nullptr) in = try_accept(one, listener);
          BL_MUST(out.result == ncclSuccess && in.result == ncclSuccess);
          return out.comm != nullptr && in.comm != nullptr;
        },
        "a connection");
    {
      const Link link{{one.net(), CommKind::kSend, out.comm},
                      {one.net(), CommKind::kRecv, in.comm}};
      must_carry(one.net(), link, 1);
    }
    other.reset();
    must_carry(one.net(), link_to_self(one), 2);
  });
}

TEST_CASE("context: its end takes what an abort has left", "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_context()));
  CAPTURE(abi);
  run_alone([&] {
    const Session lasting(abi);
    for (const int dev : {0, last_device(lasting)}) link_to_self(lasting, dev, dev);
    const Link lasting_link = link_to_self(lasting);  // so that there is a control thread all along
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
      // The caller hears that nobody will accept him. What he had begun may have come so far that
      // it waits for our accept: it goes with our listener.
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

TEST_CASE("context: its end may be said twice, and of one that never was", "[contract][context]") {
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
    // An init that failed leaves what happened to lie there.
    BL_MUST_SUCCEED(net.finalize(&context));
    BL_MUST_SUCCEED(net.finalize(reinterpret_cast<void*>(uintptr_t{1})));
    BL_MUST_SUCCEED(net.finalize(nullptr));
    must_carry(net, finished(begun, lasting), 1);
  });
}

TEST_CASE("context: none is as good as any", "[contract][context]") {
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

TEST_CASE("context: after the last end everything may begin again", "[contract][context]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    for (uint32_t life = 0; life < 3; ++life) {
      const Session session(abi);
      BL_MUST(session.devices() == 2);
      must_carry(session.net(), link_to_self(session), life);
      Begun forgotten(session);
      forgotten.abandon();
    }
  });
}

TEST_CASE("context: the traffic class it wishes for is used", "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_wishes()));
  CAPTURE(abi);
  run_alone([&] {
    const Session receiver(Abi::kV12, 104);
    const Session silent(abi);
    connect_with_wishes(silent, receiver);
    BL_MUST(!log_has(NCCL_LOG_INFO, {"traffic class 104 is wished"}));
    const Session sender(abi, 106);
    connect_with_wishes(sender, receiver);
    BL_MUST(is_overruled("106"));
  });
}

TEST_CASE("context: a traffic class that is none is ignored, with one warning",
          "[contract][context]") {
  const Abi abi = GENERATE(from_range(abis_with_wishes()));
  const int wrong = GENERATE(256, -2, INT32_MAX, INT32_MIN);
  CAPTURE(abi, wrong);
  if (!kProcessesWork) return;  // a process warns once
  run_alone([&] {
    const Session receiver(Abi::kV12, 104);
    for (int i = 0; i < 2; ++i) {
      const Session sender(abi, wrong);
      connect_with_wishes(sender, receiver);
    }
    BL_MUST(find_log_lines(NCCL_LOG_WARN, {"traffic class"}).size() == 1);
    BL_MUST(!log_has(NCCL_LOG_INFO, {"traffic class 104 is wished"}));
  });
}

TEST_CASE("context: the traffic class that people have set goes before its wish",
          "[contract][context]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(abis_with_wishes()));
  const char* const variable = GENERATE("NCCL_IB_TC", "BEELINE_TC");
  CAPTURE(abi, variable);
  run_alone([&] {
    setenv(variable, "32", 1);
    const Session receiver(Abi::kV12, 104);
    const Session sender(abi, 106);
    connect_with_wishes(sender, receiver);
    BL_MUST(!log_has(NCCL_LOG_INFO, {"traffic class", "is wished"}));
  });
}
