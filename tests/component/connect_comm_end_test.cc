// SPDX-License-Identifier: Apache-2.0
//
// Ends of a comm with more paths than the handshake agrees on today.
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
    for (const char* const device : {"softnic0", "softnic1"}) {
      must(sender.add_path(find_device(*table, device), options));
      must(receiver.add_path(find_device(*table, device), options));
    }
  }

  PortSide port_of(const PathSetup& path) const {
    return {path.device(), path.device().facts, options};
  }

  // The handshake, for one rail.
  void connect(std::size_t rail) {
    PathSetup& connecting = sender.paths()[rail];
    PathSetup& accepting = receiver.paths()[rail];
    wire::PathOffer offer = make_offer(port_of(connecting));
    offer.qp = qp_facts(port_of(connecting), connecting);
    const auto agreement = agree(port_of(accepting), offer, "h0");
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

TEST_CASE("comm end: the peer reaches the window over each path", "[component][connect]") {
  TwoEnds ends;
  for (const std::size_t rail : {0, 1}) ends.connect(rail);
  const wire::Window window = ends.sender.window();
  Connection sender = std::move(ends.sender).finish(Role::kSend, ends.receiver.window());
  Connection receiver = std::move(ends.receiver).finish(Role::kReceive, window);
  REQUIRE(sender.paths.size() == 2);
  REQUIRE(receiver.paths.size() == 2);
  for (const std::size_t rail : {0, 1}) {
    CHECK(receiver.paths[rail].peer_qpn == sender.paths[rail].queues.qp->qp_num);
    prove_write(receiver, sender, rail);
  }
}
