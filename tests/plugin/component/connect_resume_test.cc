// SPDX-License-Identifier: Apache-2.0
//
// A control channel that is lost is dialed again by both ends, and its comms go on. Only the death
// of the peer ends them.
#include <atomic>
#include <utility>

#include "common/base/host.h"
#include "tests/plugin/component/connect_listener_rig.h"
#include "tests/plugin/component/connect_network.h"

using namespace beeline;
using namespace beeline::test;

namespace {

using Cut = TestNetwork::Cut;
using Mode = TestNetwork::Mode;
using wire::MessageType;

ControlOptions impatient_options() {
  ControlOptions options = resuming_options();
  options.peer_timeout = std::chrono::seconds(2);
  return options;
}

// Two processes that can reach each other only over a TestNetwork, with a comm between them.
struct ResumeRig {
  explicit ResumeRig(const ControlOptions& options = resuming_options(),
                     const ControlOptions& of_connecting = resuming_options())
      : a(*table, options), b(*table, of_connecting) {
    listener = a.listen(ticket);
    network = std::make_unique<TestNetwork>(ticket);
    comm = make_comm(ticket);
  }
  ~ResumeRig() { a.plane().close(listener); }
  ResumeRig(const ResumeRig&) = delete;
  ResumeRig& operator=(const ResumeRig&) = delete;

  CommPair make_comm(Ticket to) {
    CommPair made;
    wire::set_attempt(to.handle(), 0);
    wait_for(
        [&] {
          if (made.sender == nullptr) made.sender = must(b.connect(to));
          if (made.receiver == nullptr) made.receiver = must(a.accept(listener));
          return made.sender != nullptr && made.receiver != nullptr;
        },
        "a comm");
    return made;
  }

  void close_listener() { a.plane().close(std::exchange(listener, nullptr)); }
  void wait_until_lost() {
    wait_for([&] { return log.count("has lost the control channel with") == 2; }, "the loss");
  }
  // Both ends log that.
  void wait_until_back(std::size_t times = 1) {
    wait_for([&] { return log.count("is back after") >= 2 * times; }, "the channel's return");
  }
  Link& sender() const { return *comm.sender->link; }
  Link& receiver() const { return *comm.receiver->link; }
  bool is_open() const {
    return sender().state() == Link::State::kOpen && receiver().state() == Link::State::kOpen;
  }

  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  Ticket ticket;
  Listener* listener = nullptr;
  std::unique_ptr<TestNetwork> network;
  Party a;
  Party b;
  CommPair comm;
};

void close(ConnectionPtr& made, std::uint32_t settled) {
  made->link->send_goodbye(settled);
  made.reset();
}

void wait_for_goodbye(const Link& link) {
  wait_for([&] { return link.state() != Link::State::kOpen; }, "a goodbye");
  BL_MUST(link.state() == Link::State::kGoodbye);
}

}  // namespace

// --- Comms go on ---

TEST_CASE("resume: an idle comm outlives the loss of its channel, and is closed over the new one",
          "[component][connect]") {
  ResumeRig rig;
  rig.close_listener();
  rig.network->cut();
  rig.wait_until_back();
  CHECK(rig.log.count("has lost the control channel with") == 2);
  CHECK(rig.log.count("process ended") == 0);
  CHECK(rig.log.count("is back after") == 2);
  CHECK(rig.is_open());
  prove_write(*rig.comm.receiver, *rig.comm.sender);
  close(rig.comm.sender, 7);
  wait_for_goodbye(rig.receiver());
  CHECK(rig.receiver().peer_settled() == 7);
  close(rig.comm.receiver, 7);
  rig.network.reset();
  wait_for_quiet();
}

TEST_CASE("resume: a connection that ends in silence is replaced", "[component][connect]") {
  ControlOptions options = resuming_options();
  options.peer_timeout = std::chrono::seconds(2);
  ResumeRig rig(options, options);
  rig.network->cut(GENERATE(Cut::kSilent, Cut::kHalf));
  // The kernel takes the goodbye, which then never arrives.
  close(rig.comm.sender, 7);
  wait_for_goodbye(rig.receiver());
  CHECK(rig.receiver().peer_settled() == 7);
  CHECK(rig.log.count("is back after") == 2);
}

TEST_CASE("resume: data moves while the channel is cut again and again", "[component][connect]") {
  ResumeRig rig;
  for (std::size_t times = 1; times <= 10; ++times) {
    rig.network->cut();
    while (rig.log.count("is back after") < 2 * times) {
      prove_write(*rig.comm.receiver, *rig.comm.sender);
    }
  }
  CHECK(rig.is_open());
  close(rig.comm.sender, 10);
  wait_for_goodbye(rig.receiver());
}

TEST_CASE("resume: when both ends dial at once, the channel gets one connection",
          "[component][connect]") {
  ResumeRig rig;
  const int before = rig.network->introductions();
  rig.network->set_mode(Mode::kSilent);
  rig.network->cut();
  // Both ends send RESUME, and neither gets an answer yet.
  wait_for([&] { return rig.network->held_introductions() == 2; }, "both dials");
  rig.network->set_mode(Mode::kForwards);
  rig.wait_until_back();
  // Nothing else follows: a message in each direction arrives.
  close(rig.comm.receiver, 3);
  wait_for_goodbye(rig.sender());
  close(rig.comm.sender, 3);
  // One end may have withdrawn its own before the network delivered it.
  CHECK(rig.network->introductions() - before <= 2);
  rig.close_listener();
  rig.network.reset();
  wait_for_quiet();
  CHECK(rig.log.count("is back after") == 2);
}

TEST_CASE("resume: a connect that meets a lost channel waits for its return",
          "[component][connect]") {
  ResumeRig rig;
  rig.network->set_mode(Mode::kResets);
  rig.network->cut();
  rig.wait_until_lost();
  Ticket ticket = rig.ticket;
  wire::set_attempt(ticket.handle(), 0);
  BL_MUST(must(rig.b.connect(ticket)) == nullptr);
  rig.network->set_mode(Mode::kForwards);
  const ConnectionPtr sender = rig.b.wait_connect(ticket);
  const ConnectionPtr receiver = rig.a.wait_accept(rig.listener);
  prove_write(*receiver, *sender);
  CHECK(rig.log.count("control channel with") >= 2);
  CHECK(rig.is_open());
}

TEST_CASE("resume: a handshake whose message is lost with the channel goes on",
          "[component][connect]") {
  const bool needs_channel = GENERATE(true, false);  // another comm, besides the handshake
  ResumeRig rig;
  if (!needs_channel) {
    close(rig.comm.sender, 1);
    wait_for_goodbye(rig.receiver());
    close(rig.comm.receiver, 1);
  }
  rig.network->cut_at(GENERATE(MessageType::kConnect, MessageType::kAccept, MessageType::kReady));
  const CommPair other = rig.make_comm(rig.ticket);
  CHECK(rig.network->has_cut());
  prove_write(*other.receiver, *other.sender);
  CHECK(must(rig.a.accept(rig.listener)) == nullptr);  // it was made once
  CHECK(rig.log.count("failed") == 0);
  if (needs_channel) CHECK(rig.is_open());
  other.sender->link->send_goodbye(3);
  wait_for_goodbye(*other.receiver->link);
}

// --- Closing ---

TEST_CASE("resume: a goodbye that is said while the channel is lost arrives later",
          "[component][connect]") {
  ResumeRig rig;
  rig.close_listener();
  rig.network->set_mode(Mode::kResets);
  rig.network->cut();
  rig.wait_until_lost();
  SECTION("the sender's") {
    close(rig.comm.sender, 5);
    rig.network->set_mode(Mode::kForwards);
    wait_for_goodbye(rig.receiver());
    CHECK(rig.receiver().peer_settled() == 5);
    close(rig.comm.receiver, 5);
  }
  SECTION("the receiver's") {
    close(rig.comm.receiver, 5);
    rig.network->set_mode(Mode::kForwards);
    wait_for_goodbye(rig.sender());
    close(rig.comm.sender, 5);
  }
  SECTION("both") {
    close(rig.comm.sender, 5);
    close(rig.comm.receiver, 5);
    rig.network->set_mode(Mode::kForwards);
  }
  rig.network->set_mode(Mode::kForwards);
  wait_for([] { return threads_named("beeline-ctl") == 0; }, "the control threads' end");
}

TEST_CASE("resume: a failure while the channel is lost is told later", "[component][connect]") {
  ResumeRig rig;
  const CommPair other = rig.make_comm(rig.ticket);  // it needs the channel on
  rig.network->set_mode(Mode::kResets);
  rig.network->cut();
  rig.wait_until_lost();
  std::string cause = "it says: ";
  SECTION("of an end that goes on") {
    rig.sender().send_failure("a reason");
    cause += "a reason";
  }
  SECTION("of an end that was given up") { rig.comm.sender.reset(); }
  rig.network->set_mode(Mode::kForwards);
  wait_for([&] { return rig.receiver().state() == Link::State::kDead; }, "the news");
  CHECK(rig.receiver().cause().starts_with(cause));
  CHECK(other.sender->link->state() == Link::State::kOpen);
  CHECK(other.receiver->link->state() == Link::State::kOpen);
}

TEST_CASE("resume: an end that has closed keeps its channel until the peer has closed",
          "[component][connect]") {
  ResumeRig rig;
  rig.close_listener();
  close(rig.comm.sender, 4);
  wait_for_goodbye(rig.receiver());
  CHECK(threads_named("beeline-ctl") == 2);
  CHECK(rig.log.count("has ended") == 0);
  close(rig.comm.receiver, 4);
  wait_for([] { return threads_named("beeline-ctl") == 0; }, "the control threads' end");
}

// --- The peer's death ---

TEST_CASE("resume: a peer that does not answer is dead after the timeout, unless data moves",
          "[component][connect]") {
  ResumeRig rig(impatient_options(), impatient_options());
  std::uint64_t moved = 0;
  rig.sender().set_progress(&moved);
  rig.network->set_mode(Mode::kResets);
  rig.network->cut();
  const Clock::time_point until = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < until) {
    std::atomic_ref(moved).fetch_add(1);
    BL_MUST(rig.sender().state() == Link::State::kOpen);
    const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&moment, nullptr);
  }
  wait_for([&] { return rig.sender().state() == Link::State::kDead; }, "the end");
  CHECK(rig.sender().cause().find("no answer for 2 s on the control channel") == 0);
  // The other end has had no progress.
  wait_for([&] { return rig.receiver().state() == Link::State::kDead; }, "the end");
  // Both ends are on this host. A control thread writes its line after the link's state.
  wait_for([&] { return rig.log.count("has lost " + host_name() + " ") == 2; }, "two lines");
}

TEST_CASE("resume: a peer that has given up the channel is dead", "[component][connect]") {
  ResumeRig rig(impatient_options(), resuming_options());
  rig.network->set_mode(Mode::kResets);
  rig.network->cut();
  wait_for([&] { return rig.receiver().state() == Link::State::kDead; }, "the impatient end");
  CHECK(rig.sender().state() == Link::State::kOpen);
  rig.network->set_mode(Mode::kForwards);
  wait_for([&] { return rig.sender().state() == Link::State::kDead; }, "the other end");
  CHECK(rig.sender().cause().find("the control channel was lost (") == 0);
  CHECK(rig.sender().cause().find("no such control channel on") != std::string::npos);
  CHECK(rig.log.count("is back after") == 0);
}

TEST_CASE("resume: the channel ends when it is lost, unless both ends resume",
          "[component][connect]") {
  const bool first = GENERATE(false, true);
  ResumeRig rig(first ? control_options() : resuming_options(),
                first ? resuming_options() : control_options());
  rig.network->cut();
  wait_for([&] { return rig.sender().state() == Link::State::kDead; }, "an end");
  wait_for([&] { return rig.receiver().state() == Link::State::kDead; }, "an end");
  CHECK(rig.log.count("dials again") == 0);
}
