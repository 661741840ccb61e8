// SPDX-License-Identifier: Apache-2.0
//
// Comms with several rails and several queue pairs on each, of which some cannot be made.
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "common/base/host.h"
#include "tests/plugin/component/connect_rails_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

std::vector<int> rails_of(const Connection& end) {
  std::vector<int> rails;
  for (const PathResources& path : end.paths) rails.push_back(path.rail);
  return rails;
}

// Checks that both ends have the same paths.
void check_paths(const CommPair& comm) {
  const Connection& sender = *comm.sender;
  const Connection& receiver = *comm.receiver;
  REQUIRE(sender.paths.size() == receiver.paths.size());
  for (std::size_t i = 0; i < sender.paths.size(); ++i) {
    const PathResources& sending = sender.paths[i];
    const PathResources& receiving = receiver.paths[i];
    CHECK(sending.rail == receiving.peer_rail);
    CHECK(sending.peer_rail == receiving.rail);
    CHECK(sending.device == sender.devices[sending.rail]);
    CHECK(receiving.device == receiver.devices[receiving.rail]);
    CHECK(sending.peer_device == receiving.device->ibdev + ":1");
    CHECK(sending.peer_qpn == receiving.queues.qp->qp_num);
    CHECK(receiving.peer_qpn == sending.queues.qp->qp_num);
    CHECK(sending.speed_mbps == receiving.speed_mbps);
  }
}

// And that each of them works.
void prove_paths(const CommPair& comm) {
  check_paths(comm);
  for (std::size_t i = 0; i < comm.receiver->paths.size(); ++i) {
    prove_write(*comm.receiver, *comm.sender, i);
  }
}

std::uint32_t flow_label_of(const PathResources& path) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  BL_MUST_OK(ibv_query_qp(path.queues.qp.get(), &attr, IBV_QP_AV, &init));
  return attr.ah_attr.grh.flow_label;
}

// Of two paths of two rails, path 1 is missing at both ends, and both say so.
void check_path_1_is_missing(RailsRig& rig, const std::string& why) {
  const CommPair comm = rig.join(2, 2);
  INFO(rig.log.all_text());
  CHECK(rails_of(*comm.sender) == std::vector{0});
  prove_paths(comm);
  CHECK(comm.sender->planned_paths == 2);
  CHECK(comm.receiver->receiver_rails == 2);
  CHECK(rig.log.count(" over 1 of 2 paths, qp ") == 2);
  CHECK(rig.log.count("path 1 (" + why) == 2);
  // Those of the missing path are destroyed.
  CHECK(RefusingVerbs::queue_pairs() == 2);
}

}  // namespace

TEST_CASE("rails: as many paths as rails are made, and all of them work", "[component][connect]") {
  RailsRig rig;
  const std::size_t rails = GENERATE(1U, 2U, 5U, 8U);
  const CommPair comm = rig.join(rails, rails);
  CHECK(comm.sender->paths.size() == rails);
  CHECK(comm.sender->planned_paths == rails);
  CHECK(comm.sender->receiver_rails == rails);
  CHECK(comm.receiver->receiver_rails == rails);
  for (std::size_t i = 0; i < rails; ++i) CHECK(comm.sender->paths[i].rail == i);
  prove_paths(comm);
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("rails: unequal numbers of rails are joined in turn", "[component][connect]") {
  struct Case {
    std::size_t listening;
    std::size_t connecting;
    std::vector<int> receiver_rails;
    std::vector<int> sender_rails;
  };
  const Case one = GENERATE(
      Case{1, 2, {0, 0}, {0, 1}}, Case{2, 1, {0, 1}, {0, 0}}, Case{2, 3, {0, 1, 0}, {0, 1, 2}},
      Case{4, 1, {0, 1, 2, 3}, {0, 0, 0, 0}}, Case{1, 4, {0, 0, 0, 0}, {0, 1, 2, 3}});
  RailsRig rig;
  const CommPair comm = rig.join(one.listening, one.connecting);
  CHECK(rails_of(*comm.sender) == one.sender_rails);
  CHECK(rails_of(*comm.receiver) == one.receiver_rails);
  CHECK(comm.sender->receiver_rails == one.listening);
  CHECK(comm.receiver->receiver_rails == one.listening);
  CHECK(comm.sender->memory.rails() == one.connecting);
  CHECK(comm.receiver->memory.rails() == one.listening);
  prove_paths(comm);
}

TEST_CASE("rails: the link names the peer's devices", "[component][connect]") {
  RailsRig rig;
  const CommPair comm = rig.join(2, 3);
  CHECK(comm.sender->link->peer().device == "a0:1+a1:1");
  CHECK(comm.receiver->link->peer().device == "b0:1+b1:1+b2:1");
  CHECK(rig.log.has("connected b0 port 1 + b1 port 1 + b2 port 1 to "));
  CHECK(rig.log.has("a0:1+a1:1 over 3 paths, qp "));
}

TEST_CASE("rails: one end can ask for several queue pairs on each rail", "[component][connect]") {
  RailsRig rig;
  const bool listener_asks = GENERATE(true, false);
  rig.set_qps_per_rail(listener_asks ? 2 : 1, listener_asks ? 1 : 2);
  const CommPair comm = rig.join(2, 2);
  CHECK(rails_of(*comm.sender) == std::vector{0, 1, 0, 1});
  prove_paths(comm);
  for (const Connection* const end : {comm.sender.get(), comm.receiver.get()}) {
    CHECK(end->memory.rails() == 2);
    std::set<std::uint32_t> labels;
    for (const PathResources& path : end->paths) labels.insert(flow_label_of(path));
    CHECK(labels.size() == 4);
  }
}

TEST_CASE("rails: a comm has eight paths at most, and the log says what is not made",
          "[component][connect]") {
  RailsRig rig;
  rig.set_qps_per_rail(1, 3);
  const CommPair comm = rig.join(2, 3);
  CHECK(rails_of(*comm.sender) == std::vector{0, 1, 2, 0, 1, 2, 0, 1});
  prove_paths(comm);
  CHECK(rig.log.count("for 9 paths; a connection has 8 at most") == 2);
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("rails: a port that is down at connect is left out, at either end",
          "[component][connect]") {
  RailsRig rig;
  const bool is_listener = GENERATE(true, false);
  rig.fabric.command(is_listener ? "h0/a1" : "h0/b1", "down");
  check_path_1_is_missing(rig, host_name() + (is_listener ? " a1" : " b1") + " port 1 is DOWN");
  wait_for(
      [&] { return rig.log.count(") cannot be made now: 1 connection was made without") == 2; },
      "the warning of each end");
}

TEST_CASE("rails: a path that may be made later keeps its number", "[component][connect]") {
  RailsRig rig;
  rig.set_recovery();
  rig.fabric.command("h0/a0", "down");
  rig.fabric.command("h0/b2", "remove");
  const CommPair comm = rig.join(4, 4);
  for (const Connection* const end : {comm.sender.get(), comm.receiver.get()}) {
    CHECK(rails_of(*end) == std::vector{0, 1, 2, 3});
    for (const std::size_t path : {0U, 2U}) {
      CHECK(end->paths[path].is_missing());
      CHECK(end->paths[path].device == end->devices[path]);
    }
  }
  for (const std::size_t path : {1U, 3U}) prove_write(*comm.receiver, *comm.sender, path);
  CHECK(comm.sender->link->peer().device == "a1:1+a3:1");
  CHECK(rig.log.count(" over 2 of 4 paths, qp ") == 2);
  CHECK(RefusingVerbs::queue_pairs() == 4);
}

TEST_CASE("rails: if no port of an end is active, all of them are tried", "[component][connect]") {
  RailsRig rig;
  const bool is_listener = GENERATE(true, false);
  for (const char* const number : {"0", "1"}) {
    rig.fabric.command(std::string("h0/") + (is_listener ? "a" : "b") + number, "down");
  }
  const CommPair comm = rig.join(2, 2);
  CHECK(rails_of(*comm.sender) == std::vector{0, 1});
  CHECK(rails_of(*comm.receiver) == std::vector{0, 1});
  check_paths(comm);
  CHECK(rig.log.count(" over 2 paths, qp ") == 2);
}

TEST_CASE("rails: a device that is gone at connect is left out, at either end",
          "[component][connect]") {
  RailsRig rig;
  const bool is_listener = GENERATE(true, false);
  rig.fabric.command(is_listener ? "h0/a1" : "h0/b1", "remove");
  check_path_1_is_missing(rig, host_name() + (is_listener ? " a1" : " b1") + " port 1: ");
}

TEST_CASE("rails: a path on which the ports cannot agree is left out", "[component][connect]") {
  softnic::FabricSpec mixed = sixteen_devices();
  mixed.hosts[0].devices[9].link_layer = softnic::LinkLayer::kInfiniBand;
  RailsRig rig(mixed);
  check_path_1_is_missing(rig, "an InfiniBand port cannot talk to a RoCE port");
}

TEST_CASE("rails: a queue pair that cannot be made or connected is left out, at either end",
          "[component][connect]") {
  RailsRig rig;
  const std::string device = GENERATE("a1", "b1");
  const ibv_qp_state state = GENERATE(IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS);
  RefusingVerbs::refuse(device, state, EINVAL);
  check_path_1_is_missing(rig, host_name() + " " + device + " port 1: ");
}

TEST_CASE("rails: a path whose address is not resolved does not hold up the others",
          "[component][connect]") {
  RailsRig rig;
  RefusingVerbs::refuse("b1", IBV_QPS_RTR, ETIMEDOUT);
  check_path_1_is_missing(rig,
                          host_name() + " b1 port 1 could not resolve the address of rail 1 of ");
}

TEST_CASE("rails: each end can leave out another path", "[component][connect]") {
  RailsRig rig;
  rig.fabric.command("h0/a0", "down");
  rig.fabric.command("h0/b2", "down");
  const CommPair comm = rig.join(4, 4);
  CHECK(rails_of(*comm.sender) == std::vector{1, 3});
  prove_paths(comm);
  CHECK(comm.sender->window.rkeys[0] == 0);
  CHECK(comm.receiver->window.rkeys[2] == 0);
  CHECK(RefusingVerbs::queue_pairs() == 4);
  CHECK(rig.log.count("path 0 (" + host_name() + " a0 port 1 is DOWN), path 2 (" + host_name() +
                      " b2 port 1 is DOWN)") == 2);
}

TEST_CASE("rails: paths that are missing for the same reason share a sentence",
          "[component][connect]") {
  RailsRig rig;
  rig.set_qps_per_rail(2, 2);
  rig.fabric.command("h0/a1", "down");
  const CommPair comm = rig.join(2, 2);
  CHECK(rails_of(*comm.sender) == std::vector{0, 0});
  prove_paths(comm);
  CHECK(rig.log.count("these paths are missing: paths 1 and 3 (" + host_name() +
                      " a1 port 1 is DOWN)") == 2);
}

TEST_CASE("rails: a comm without any path fails, and names the reason of each",
          "[component][connect]") {
  softnic::FabricSpec mixed = sixteen_devices();
  for (const std::size_t i : {8U, 9U}) {
    mixed.hosts[0].devices[i].link_layer = softnic::LinkLayer::kInfiniBand;
  }
  RailsRig rig(mixed);
  CHECK(rig.join_error(2, 2, "no path can be made: path 0 (an InfiniBand port cannot").code ==
        Errc::kUnsupported);
  INFO(rig.log.all_text());
  CHECK(rig.log.count("b1 port 1, ") == 2);
  wait_for([] { return RefusingVerbs::queue_pairs() == 0; }, "the end of all queue pairs");
}

TEST_CASE("rails: without any path, an end's own failure counts more than the peer's",
          "[component][connect]") {
  RailsRig rig;
  const std::string line = "no path can be made: path 0 (" + host_name();
  SECTION("at the accepting end") {
    rig.fabric.command("h0/b0", "down");
    RefusingVerbs::refuse("a1", IBV_QPS_RESET, EINVAL);
    const RailsRig::Errors errors = rig.join_errors(2, 2);
    CHECK(errors.of_accept.sys_errno == EINVAL);
    CHECK(errors.of_connect.code == Errc::kSystem);
    wait_for([&] { return rig.log.count(line) == 2; }, "a line of each end");
  }
  SECTION("at the connecting end") {
    rig.fabric.command("h0/a0", "down");
    RefusingVerbs::refuse("b1", IBV_QPS_RTR, EINVAL);
    CHECK(rig.join_error(2, 2, line).sys_errno == EINVAL);
  }
}

TEST_CASE("rails: accept() fails if the connecting end has lost its devices before",
          "[component][connect]") {
  RailsRig rig;
  for (const char* device : {"h0/b0", "h0/b1"}) rig.fabric.command(device, "remove");
  const RailsRig::Errors errors = rig.join_errors(2, 2);
  INFO(rig.log.all_text());
  CHECK(errors.of_connect.code == Errc::kSystem);
  CHECK(errors.of_accept.code == Errc::kPeerClosed);
  CHECK(rig.log.count("no path can be made: path 0 (" + host_name() + " b0 port 1: use a device") ==
        2);
}

TEST_CASE("rails: the loss of a device without a path changes nothing", "[component][connect]") {
  RailsRig rig;
  rig.fabric.command("h0/b1", "down");
  const CommPair comm = rig.join(2, 2);
  rig.fabric.command("h0/b1", "remove");
  wait_for([&] { return rig.log.has("device b1 was removed"); }, "the event");
  CHECK(comm.sender->link->state() == Link::State::kOpen);
  prove_paths(comm);
}
