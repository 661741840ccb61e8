// SPDX-License-Identifier: Apache-2.0
//
// Tests what the statistics page shows of connections that are not made yet, and of listeners.
#include <optional>
#include <utility>
#include <vector>

#include "plugin/stats/stats_page.h"
#include "tests/plugin/component/connect_raw_peer.h"
#include "tests/support/stats_dir.h"
#include "tools/pages/page_reader.h"

using namespace beeline;
using namespace beeline::test;

namespace {

class ShownSlots final : public CommSlots {
 public:
  StatsSlot acquire(SlotRole role, RailDevices devices) noexcept override {
    return page_.acquire(role, devices.front()->name);
  }
  void set_identity(std::uint64_t identity) noexcept override { page_.set_identity(identity); }
  void set_alive(std::int64_t now_ns) noexcept override { page_.set_alive(now_ns); }

  // All that were ever used, oldest first, up to one that is being filled at this moment.
  std::vector<SlotView> read() const {
    const Result<PageReader> reader = PageReader::open(page_.path());
    BL_MUST(reader.has_value());
    std::vector<SlotView> slots;
    for (std::uint32_t i = 0; i < reader->slots_used(); ++i) {
      std::optional<SlotView> slot = reader->slot(i);
      if (!slot) break;
      slots.push_back(*std::move(slot));
    }
    return slots;
  }
  std::uint64_t identity() const { return PageReader::open(page_.path())->identity(); }

 private:
  StatsDir folder_;
  StatsPage page_ = StatsPage::open({.directory = folder_.path()});
};

ControlOptions shown_in(ShownSlots& slots) {
  ControlOptions options = control_options();
  options.slots = &slots;
  options.wait_warning = std::chrono::milliseconds(100);  // it looks as often as it can
  return options;
}

// The page of process b, which connects, and of process a, which listens.
struct ShownRig {
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  ShownSlots listening;
  ShownSlots connecting;
  Party a{*table, shown_in(listening)};
  Party b{*table, shown_in(connecting)};
};

// Waits until the first slot is as it should be.
template <class Condition>
SlotView wait_for_first(const ShownSlots& slots, Condition condition, const char* what) {
  std::vector<SlotView> seen;
  wait_for(
      [&] {
        seen = slots.read();
        return !seen.empty() && condition(seen.front());
      },
      what);
  return seen.front();
}

bool waits_to_connect(const SlotView& slot) { return slot.waits_for == Wait::kConnect; }
bool waits_to_accept(const SlotView& slot) { return slot.waits_for == Wait::kAccept; }

}  // namespace

TEST_CASE("shown: a connect has its slot from its start, and keeps it when it is made",
          "[component][connect]") {
  ShownRig rig;
  FakeListener fake;
  const std::int64_t before = now_ns();
  BL_MUST(must(rig.b.connect(fake.ticket())) == nullptr);
  RawPeer peer = fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  const SlotView pending = wait_for_first(rig.connecting, waits_to_connect, "a pending connect");
  const wire::Handle handle = handle_of(fake.ticket());
  CHECK(pending.state == SlotState::kConnecting);
  CHECK(pending.role == SlotRole::kSend);
  CHECK(pending.peer_host == handle.host);
  CHECK(pending.peer_device == handle.device);
  CHECK(pending.peer_identity == identity_of(handle.process));
  CHECK(pending.number == connect.comm);
  CHECK(pending.peer_number == handle.listener);
  CHECK(static_cast<std::int64_t>(pending.waits_since_ns) >= before);

  peer.send(wire::encode(accept_for(connect)));
  ConnectionPtr made = rig.b.wait_connect(fake.ticket());
  const SlotView done = rig.connecting.read().front();
  CHECK(rig.connecting.read().size() == 1);
  CHECK(done.id == pending.id);
  CHECK(done.waits_for == Wait::kNothing);
  CHECK(done.peer_number == accept_for(connect).our_comm);
  CHECK(done.closed_ns == 0);
  CHECK(made->slot.is_shown());
  made.reset();
  CHECK(rig.connecting.read().front().state == SlotState::kClosed);
}

TEST_CASE("shown: a connect that fails stays in the page with its error", "[component][connect]") {
  ShownRig rig;
  Ticket ticket;
  Listener* const gone = rig.a.listen(ticket);
  Ticket other;
  Listener* const listener = rig.a.listen(other);
  rig.a.plane().close(gone);
  const Error error = rig.b.wait_connect_error(ticket);
  const SlotView failed = wait_for_first(
      rig.connecting, [](const SlotView& slot) { return slot.closed_ns != 0; }, "the end");
  CHECK(failed.state == SlotState::kFailed);
  CHECK(failed.waits_for == Wait::kNothing);
  CHECK(failed.peer_identity == rig.listening.identity());
  REQUIRE_FALSE(failed.life.empty());
  CHECK(failed.life.back().event == Event::kFailed);
  CHECK(failed.life.back().arg == static_cast<std::uint32_t>(error.code));
  rig.a.plane().close(listener);
}

TEST_CASE("shown: a connect that is given up leaves a closed slot", "[component][connect]") {
  constexpr OwnerId kOwner = 7;
  ShownRig rig;
  FakeListener fake;
  BL_MUST(must(rig.b.connect(fake.ticket(), "softnic1", {.owner = kOwner})) == nullptr);
  wait_for_first(rig.connecting, waits_to_connect, "a pending connect");
  rig.b.plane().reclaim(kOwner);
  wait_for_first(
      rig.connecting, [](const SlotView& slot) { return slot.state == SlotState::kClosed; },
      "the end");
}

TEST_CASE("shown: a connect that is not called any more waits for nothing",
          "[component][connect]") {
  ShownRig rig;
  FakeListener fake;
  BL_MUST(must(rig.b.connect(fake.ticket())) == nullptr);
  wait_for_first(rig.connecting, waits_to_connect, "a pending connect");
  wait_for_first(
      rig.connecting, [](const SlotView& slot) { return slot.waits_for == Wait::kNothing; },
      "the look that finds no call");
  BL_MUST(must(rig.b.connect(fake.ticket())) == nullptr);
  const SlotView again = wait_for_first(rig.connecting, waits_to_connect, "the next call");
  CHECK(again.state == SlotState::kConnecting);
  CHECK(again.waits_since_ns > again.opened_ns + static_cast<std::uint64_t>(kNotCalledNs));
}

TEST_CASE("shown: a listener has a slot once accept waits there", "[component][connect]") {
  ShownRig rig;
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket);
  Ticket other;
  Listener* const stays = rig.a.listen(other);  // so that the control thread does not end
  const std::int64_t before = now_ns();
  const auto is_seen_waiting = [&] {
    BL_MUST(must(rig.a.accept(listener)) == nullptr);
    const std::vector<SlotView> slots = rig.listening.read();
    return !slots.empty() && waits_to_accept(slots.front());
  };
  CHECK(rig.listening.read().empty());
  wait_for(is_seen_waiting, "a listener that waits");
  const SlotView waiting = rig.listening.read().front();
  CHECK(waiting.role == SlotRole::kListen);
  CHECK(waiting.state == SlotState::kReady);
  CHECK(waiting.number == handle_of(ticket).listener);
  CHECK(static_cast<std::int64_t>(waiting.waits_since_ns) >= before);

  SECTION("until it has a connection") {
    const ConnectionPtr sender = rig.b.wait_connect(ticket);
    const ConnectionPtr receiver = rig.a.wait_accept(listener);
    wait_for_first(
        rig.listening, [](const SlotView& slot) { return slot.waits_for == Wait::kNothing; },
        "the end of the wait");
    rig.a.plane().close(listener);
  }
  SECTION("until it is closed") {
    rig.a.plane().close(listener);
    wait_for_first(
        rig.listening, [](const SlotView& slot) { return slot.state == SlotState::kClosed; },
        "the end of the slot");
  }
  SECTION("until accept is not called any more") {
    wait_for_first(
        rig.listening, [](const SlotView& slot) { return slot.waits_for == Wait::kNothing; },
        "the look that finds no call");
    const std::int64_t later = now_ns();
    wait_for(is_seen_waiting, "the next call");
    CHECK(static_cast<std::int64_t>(rig.listening.read().front().waits_since_ns) + kNsPerSec >=
          later);
    rig.a.plane().close(listener);
  }
  rig.a.plane().close(stays);
}
