// SPDX-License-Identifier: Apache-2.0
//
// Tests what the control thread finds that real comms wait for, and the line in the log.
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/control/wait_log.h"
#include "tests/plugin/component/device_rig.h"
#include "tests/plugin/component/poll_hook.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

constexpr std::int64_t kWaitLimit = 4 * kNsPerSec;

// The control thread's looks, once a second by a clock of its own.
struct Looks {
  explicit Looks(TransferRig& rig_of_test, std::int64_t limit_ns = kWaitLimit)
      : rig(rig_of_test), log(limit_ns) {}

  Wait at(FakeLink& link) { return link.look_at_wait(now += kNsPerSec).what; }
  // `calls` is what the application does between two looks.
  template <class Calls>
  void look(int times, const std::vector<std::shared_ptr<Link>>& links, Calls&& calls) {
    for (int i = 0; i < times; ++i) {
      log.look(links, now += kNsPerSec);
      calls();
    }
  }

  TransferRig& rig;
  WaitLog log;
  std::int64_t now = 1000 * kNsPerSec;
};

// Not owned: the rig has them.
std::shared_ptr<Link> borrowed(FakeLink& link) {
  return {&link, [](Link*) {}};
}

TransferOptions one_or_two_paths() { return {.paths = GENERATE(std::size_t{1}, std::size_t{2})}; }

TEST_CASE("wait: a sender without credit waits for a receive", "[component][transfer]") {
  TransferRig rig(one_or_two_paths());
  Storage from = rig.storage(64, 0x5a);
  Looks looks(rig);
  CHECK(looks.at(rig.sender_link()) == Wait::kNothing);
  CHECK(looks.at(rig.sender_link()) == Wait::kNothing);  // nobody sends
  CHECK(must(isend(rig.sender(), from, 64, 0)) == nullptr);
  CHECK(looks.at(rig.sender_link()) == Wait::kCredit);
  CHECK(looks.at(rig.sender_link()) == Wait::kCredit);
  CHECK(looks.at(rig.sender_link()) == Wait::kCredit);
  CHECK(looks.at(rig.sender_link()) == Wait::kNothing);  // it has given up
  CHECK(must(isend(rig.sender(), from, 64, 0)) == nullptr);
  CHECK(looks.at(rig.sender_link()) == Wait::kCredit);

  // The question has changed nothing: data moves.
  Storage into = rig.storage(64);
  Request* const receive = rig.receive(into, 64, 0);
  Request* const send = rig.send(from, 64, 0);
  CHECK(rig.finish(receive) == 64);
  rig.finish(send);
  CHECK(looks.at(rig.sender_link()) == Wait::kNothing);
  CHECK(into.data()[63] == 0x5a);
}

TEST_CASE("wait: a receiver that is tested waits for data, and one that is not for a test",
          "[component][transfer]") {
  TransferRig rig(one_or_two_paths());
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  Looks looks(rig);
  Request* const receive = rig.receive(into, 64, 0);
  looks.at(rig.receiver_link());
  looks.at(rig.receiver_link());
  CHECK_FALSE(must(test_once(*receive, nullptr)));
  CHECK(looks.at(rig.receiver_link()) == Wait::kData);
  CHECK(looks.at(rig.receiver_link()) == Wait::kData);
  CHECK(looks.at(rig.receiver_link()) == Wait::kData);
  CHECK(looks.at(rig.receiver_link()) == Wait::kTest);
  Request* const send = rig.send(from, 64, 0);
  rig.finish(send);
  CHECK(rig.finish(receive) == 64);
  CHECK(looks.at(rig.receiver_link()) == Wait::kNothing);
  CHECK(looks.at(rig.receiver_link()) == Wait::kNothing);
  CHECK(looks.at(rig.receiver_link()) == Wait::kNothing);
}

TEST_CASE("wait: one line says what this process waits for, and another that it goes on",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  const std::vector links = {borrowed(rig.receiver_link()), borrowed(rig.sender_link())};
  Request* const receive = rig.receive(into, 64, 0);
  const LogCapture log;
  Looks looks(rig);
  const auto test_receive = [&] { CHECK_FALSE(must(test_once(*receive, nullptr))); };
  looks.look(6, links, test_receive);
  CHECK(log.lines().empty());  // it has waited for 3 s
  looks.look(10, links, test_receive);
  REQUIRE(log.count(LogLevel::kWarn) == 1);
  INFO(log.all_text());
  CHECK(log.has("receiver on "));
  CHECK(
      log.has("from peer faraway (pid 4711) softnic9:1: has waited 4 s for the data of 1 receive: "
              "look at what process 4711 on faraway does"));
  Request* const send = rig.send(from, 64, 0);
  rig.finish(send);
  rig.finish(receive);
  looks.look(10, links, [] {});
  CHECK(log.count("the connections that had waited wait no longer") == 1);
  CHECK(log.count(LogLevel::kWarn) == 2);

  // A new wait has a line of its own.
  const auto send_without_credit = [&] {
    CHECK(must(isend(rig.sender(), from, 64, 0)) == nullptr);
  };
  looks.look(10, links, send_without_credit);
  CHECK(log.has("sender on "));
  CHECK(log.has("has waited 4 s for the peer to post a receive"));
  CHECK(log.count(LogLevel::kWarn) == 3);
}

TEST_CASE("wait: of several connections, the log names the one that is nearest to the cause",
          "[component][transfer]") {
  TransferRig rig;
  TransferRig other;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  Storage into_other = other.storage(64);
  const std::vector links = {borrowed(other.receiver_link()), borrowed(rig.receiver_link()),
                             borrowed(rig.sender_link())};
  Request* const receive = other.receive(into_other, 64, 0);
  rig.receive(into, 64, 0);
  Request* const send = rig.send(from, 64, 0);
  const LogCapture log;
  Looks looks(rig);
  const PollHook hook(rig.sender(), [](ibv_cq*, int, ibv_wc*) { return 0; });
  SECTION("it waits for two requests, and leaves the third untested") {
    looks.look(10, links, [&] {
      CHECK_FALSE(must(test_once(*send, nullptr)));
      CHECK_FALSE(must(test_once(*receive, nullptr)));
    });
    CHECK(log.has("sender on "));
    CHECK(log.has("has waited 4 s for the acknowledgment of 1 send"));
    CHECK(log.has("; other connections of this process that wait: 1"));
  }
  SECTION("it tests nothing") {
    looks.look(10, links, [] {});
    CHECK(
        log.has("has 1 open request, and the application has made no call for this "
                "connection for 4 s"));
    CHECK(log.has("; other connections of this process that wait: 2"));
  }
  INFO(log.all_text());
  REQUIRE(log.count(LogLevel::kWarn) == 1);
}

TEST_CASE("wait: a request that is not tested while another connection has no path is no news",
          "[component][transfer]") {
  TransferRig rig;
  TransferRig other;
  Storage into = other.storage(64);
  other.receive(into, 64, 0);
  Storage from = rig.storage(64, 0x5a);
  rig.sender().gate().enter();  // as a call does
  rig.sender().set_state(rig.sender().paths()[0], PathState::kFencing);
  rig.sender().gate().leave();
  const LogCapture log;
  Looks looks(rig);
  looks.look(10, {borrowed(other.receiver_link()), borrowed(rig.sender_link())},
             [&] { CHECK(must(isend(rig.sender(), from, 64, 0)) == nullptr); });
  CHECK(looks.at(rig.sender_link()) == Wait::kPath);
  CHECK(log.lines().empty());
}

TEST_CASE("wait: without a limit the log says nothing", "[component][transfer]") {
  TransferRig rig;
  Storage into = rig.storage(64);
  Request* const receive = rig.receive(into, 64, 0);
  const LogCapture log;
  Looks looks(rig, 0);
  looks.look(100, {borrowed(rig.receiver_link())},
             [&] { CHECK_FALSE(must(test_once(*receive, nullptr))); });
  CHECK(log.lines().empty());
}

}  // namespace
}  // namespace beeline::test
