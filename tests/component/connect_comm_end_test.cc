// SPDX-License-Identifier: Apache-2.0
//
// Ends of a comm with two paths, without a handshake.
#include "plugin/connect/handshake/agreement.h"
#include "plugin/connect/path/comm_end.h"
#include "tests/component/connect_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

struct TwoEnds {
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  QpOptions options;
  CommEnd sender = must(CommEnd::create(control_options().sender.of(2)));
  CommEnd receiver = must(CommEnd::create(control_options().receiver.of(2)));

  TwoEnds() {
    for (std::uint8_t rail = 0; rail < 2; ++rail) {
      const PathPlace place{.number = rail, .rail = rail, .peer_rail = rail};
      const Device& device = table->devices()[rail];
      must(sender.add_path(place, device, options));
      must(receiver.add_path(place, device, options));
    }
  }

  PortSide port_of(const PathSetup& path) const {
    return {path.device(), path.device().facts, options};
  }

  // The handshake, for one rail.
  void connect(std::uint8_t rail) {
    PathSetup& connecting = sender.paths().at(rail);
    PathSetup& accepting = receiver.paths().at(rail);
    wire::PathOffer offer = make_offer(port_of(connecting)).value();
    offer.qp = qp_facts(port_of(connecting), connecting);
    const auto agreement = agree(port_of(accepting), offer, "h0", random_flow_labels());
    if (!agreement) throw MustError(agreement.error().text);
    wire::PathAnswer answer = agreement->answer;
    answer.qp = qp_facts(port_of(accepting), accepting);
    const auto route = route_of(port_of(connecting), answer);
    if (!route) throw MustError(route.error().text);
    accepting.set_route(agreement->route);
    must(accepting.connect(options));
    connecting.set_route(*route);
    must(connecting.connect(options));
  }
};

}  // namespace

TEST_CASE("comm end: it is connected once all its paths are", "[component][connect]") {
  TwoEnds ends;
  ends.connect(0);
  CHECK_FALSE(ends.sender.is_connected());
  CHECK_FALSE(ends.receiver.is_connected());
  ends.connect(1);
  CHECK(ends.sender.is_connected());
  CHECK(ends.receiver.is_connected());
}

TEST_CASE("comm end: the memory is registered once for each rail", "[component][connect]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  CommEnd end = must(CommEnd::create(control_options().sender.of(3)));
  for (std::uint8_t number = 0; number < 3; ++number) {
    // Rail 0 has two paths, and rail 1 none.
    const auto rail = static_cast<std::uint8_t>(number % 2 * 2);
    const Device& device = table->devices()[number % 2];
    must(end.add_path({.number = number, .rail = rail, .peer_rail = 0}, device, {}));
  }
  const wire::Window window = end.window();
  CHECK(window.rkeys[0] != 0);
  CHECK(window.rkeys[1] == 0);
  CHECK(window.rkeys[2] != 0);
  const Connection made = std::move(end).finish(Role::kSend, {});
  CHECK(made.memory.rails() == 3);
  CHECK_FALSE(made.memory.has_rail(1));
}

TEST_CASE("comm end: the peer reaches the window over each path", "[component][connect]") {
  TwoEnds ends;
  for (std::uint8_t rail = 0; rail < 2; ++rail) ends.connect(rail);
  const wire::Window window = ends.sender.window();
  Connection sender = std::move(ends.sender).finish(Role::kSend, ends.receiver.window());
  Connection receiver = std::move(ends.receiver).finish(Role::kReceive, window);
  REQUIRE(sender.paths.size() == 2);
  REQUIRE(receiver.paths.size() == 2);
  for (const std::size_t rail : {std::size_t{0}, std::size_t{1}}) {
    CHECK(receiver.paths[rail].peer_qpn == sender.paths[rail].queues.qp->qp_num);
    prove_write(receiver, sender, rail);
  }
}
