// SPDX-License-Identifier: Apache-2.0
//
// listen, connect and accept between two control planes, and within one.
#include <algorithm>
#include <cerrno>

#include "plugin/connect/socket/socket.h"
#include "plugin/wire/handle.h"
#include "tests/plugin/component/connect_rig.h"

using namespace beeline;
using namespace beeline::test;

TEST_CASE_METHOD(TwoPlanes, "connect: both ends get queue pairs that work",
                 "[component][connect]") {
  const CommPair comm = join(a, b);
  CHECK(comm.sender->role == Role::kSend);
  CHECK(comm.receiver->role == Role::kReceive);
  CHECK(comm.sender->window.length == 0);
  CHECK(comm.receiver->window.length == 16384);
  CHECK(comm.receiver->paths[0].peer_qpn == comm.sender->paths[0].queues.qp->qp_num);
  CHECK(comm.receiver->paths[0].queues.max_inline >= 64);
  CHECK(comm.sender->link->peer().device == "softnic0:1");
  CHECK(comm.receiver->link->peer().device == "softnic1:1");
  CHECK(comm.receiver->link->peer().pid == getpid());
  // Both are on this host. The end that has dialed has measured it.
  const ClockOffset clock = comm.sender->link->peer().clock;
  CHECK(clock.error_ns > 0);
  CHECK(std::abs(clock.ahead_ns) <= clock.error_ns);
  CHECK(comm.receiver->link->peer().clock.error_ns == 0);
  prove_write(*comm.receiver, *comm.sender);
}

TEST_CASE_METHOD(TwoPlanes, "connect: all comms of two processes share one channel",
                 "[component][connect]") {
  wait_for_quiet();  // the sockets of earlier tests would be counted
  std::vector<CommPair> comms;
  comms.reserve(32);
  for (int i = 0; i < 32; ++i) {
    comms.push_back(i % 2 == 0 ? join(a, b) : join(b, a));
  }
  for (const CommPair& comm : comms) prove_write(*comm.receiver, *comm.sender);
  CHECK(tcp_connections() == 2);
  CHECK(listening_sockets() == 2);
}

TEST_CASE_METHOD(TwoPlanes, "connect: processes that dial each other at once end with one channel",
                 "[component][connect]") {
  constexpr std::size_t kEach = 6;
  std::array<Ticket, kEach> to_a;
  std::array<Ticket, kEach> to_b;
  std::vector<Listener*> at_a;
  std::vector<Listener*> at_b;
  for (std::size_t i = 0; i < kEach; ++i) {
    at_a.push_back(a.listen(to_a[i]));
    at_b.push_back(b.listen(to_b[i]));
  }
  std::vector<ConnectionPtr> made(4 * kEach);
  const auto poll = [](ConnectionPtr& place, auto&& ask) {
    if (place == nullptr) place = must(ask());
    return place != nullptr;
  };
  wait_for(
      [&] {
        bool all = true;
        for (std::size_t i = 0; i < kEach; ++i) {
          all &= poll(made[4 * i], [&] { return a.connect(to_b[i]); });
          all &= poll(made[4 * i + 1], [&] { return b.connect(to_a[i]); });
          all &= poll(made[4 * i + 2], [&] { return a.accept(at_a[i]); });
          all &= poll(made[4 * i + 3], [&] { return b.accept(at_b[i]); });
        }
        return all;
      },
      "all comms");
  wait_for([] { return tcp_connections() == 2; }, "a single channel");
  CHECK_FALSE(log.has("is refused"));  // nothing is wrong
  for (const ConnectionPtr& one : made) CHECK(one->link->state() == Link::State::kOpen);
  for (Listener* listener : at_a) a.plane().close(listener);
  for (Listener* listener : at_b) b.plane().close(listener);
}

TEST_CASE("connect: IPv6 serves as well", "[component][connect]") {
  ControlOptions options = control_options();
  options.family = "AF_INET6";
  const TestFabric fabric;
  const auto table = scan(fabric);
  Party a(*table, options);
  Party b(*table, options);
  const CommPair comm = join(a, b);
  prove_write(*comm.receiver, *comm.sender);
}

TEST_CASE("connect: no interface that matches is an error that lists what there is",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.interface = "nosuch";
  const TestFabric fabric;
  const auto table = scan(fabric);
  const LogCapture log;
  Party a(*table, options);
  Ticket ticket;
  const auto listener =
      a.plane().listen(table->alone(find_device(*table, "softnic0")), ticket.handle());
  REQUIRE_FALSE(listener);
  CHECK(listener.error().code == Errc::kNotFound);
  CHECK(log.has("matches NCCL_SOCKET_IFNAME=nosuch"));
  CHECK(log.has("lo (127.0.0.1)"));
  wait_for([] { return threads_named("beeline-ctl") == 0; }, "the control thread's end");
}

TEST_CASE("connect: a process listens on a free port of BEELINE_LISTEN_PORTS",
          "[component][connect]") {
  wire::SocketAddress loopback = {.kind = wire::AddressKind::kIpv4, .port = 0, .bytes = {}};
  loopback.bytes = {127, 0, 0, 1};
  const UniqueFd held = must(open_listening_socket(loopback));
  const std::uint16_t used = must(local_address(held.get())).port;
  ControlOptions options = control_options();
  options.ports = {used, used};
  const TestFabric fabric;
  const auto table = scan(fabric);
  const LogCapture log;
  Ticket ticket;
  Party full(*table, options);
  const auto listener =
      full.plane().listen(table->alone(find_device(*table, "softnic0")), ticket.handle());
  REQUIRE_FALSE(listener);
  CHECK(listener.error().sys_errno == EADDRINUSE);
  CHECK(log.has("all ports of BEELINE_LISTEN_PORTS are in use"));
  // Other processes of this host may have some of these.
  options.ports.first = static_cast<std::uint16_t>(std::min<int>(used, 65000));
  options.ports.last = static_cast<std::uint16_t>(options.ports.first + 500);
  Party a(*table, options);
  (void)a.listen(ticket);
  const std::uint16_t port = must(wire::decode_handle(ticket.handle())).address.port;
  CHECK(port >= options.ports.first);
  CHECK(port <= options.ports.last);
  CHECK(port != used);
}

TEST_CASE("connect: a peer's link-local address needs a local interface, and the log says so",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.interface = "nosuch";
  const TestFabric fabric;
  const auto table = scan(fabric);
  const LogCapture log;
  Party b(*table, options);
  wire::Handle handle{
      .listener = 1,
      .address = {.kind = wire::AddressKind::kIpv6, .port = 1, .bytes = {0xfe, 0x80}},
      .host = "faraway",
      .device = "fake0:1"};
  Ticket ticket;
  wire::encode(handle, ticket.handle());
  CHECK(b.wait_connect_error(ticket).code == Errc::kNotFound);
  CHECK(log.count(LogLevel::kWarn) == 1);
  CHECK(log.has("matches NCCL_SOCKET_IFNAME=nosuch"));
}

TEST_CASE_METHOD(TwoPlanes,
                 "connect: a closed listener rejects, on a new channel and on an existing one",
                 "[component][connect]") {
  Ticket ticket;
  Listener* const kept = a.listen(ticket);
  Ticket closed;
  a.plane().close(a.listen(closed));
  CHECK(b.wait_connect_error(closed).code == Errc::kPeerClosed);
  const ConnectionPtr sender = b.wait_connect(ticket);
  const ConnectionPtr receiver = a.wait_accept(kept);
  Ticket again;
  a.plane().close(a.listen(again));
  CHECK(b.wait_connect_error(again).code == Errc::kPeerClosed);
  CHECK(log.count("no such listener on ") >= 2);
  CHECK(sender->link->state() == Link::State::kOpen);
  a.plane().close(kept);
}

TEST_CASE_METHOD(TwoPlanes,
                 "connect: a handle of a closed listener does not fail the dial for other handles",
                 "[component][connect]") {
  Ticket closed;
  Ticket good;
  Listener* const first = a.listen(closed);
  Listener* const second = a.listen(good);
  a.plane().close(first);
  // Both wait for the same dial, which presents the handle of the closed listener first.
  BL_MUST(must(b.connect(closed)) == nullptr);
  BL_MUST(must(b.connect(good)) == nullptr);
  const ConnectionPtr sender = b.wait_connect(good);
  const ConnectionPtr receiver = a.wait_accept(second);
  CHECK(b.wait_connect_error(closed).code == Errc::kPeerClosed);
  a.plane().close(second);
}

TEST_CASE_METHOD(
    TwoPlanes,
    "connect: a listener serves several peers, and each copy of a handle is an attempt of its own",
    "[component][connect]") {
  Ticket ticket;
  Listener* const listener = a.listen(ticket);
  Ticket copy = ticket;
  const ConnectionPtr first = b.wait_connect(ticket);
  const ConnectionPtr second = b.wait_connect(copy);
  const ConnectionPtr one = a.wait_accept(listener);
  const ConnectionPtr other = a.wait_accept(listener);
  CHECK(first->paths[0].queues.qp->qp_num != second->paths[0].queues.qp->qp_num);
  CHECK(one->paths[0].peer_qpn == first->paths[0].queues.qp->qp_num);
  CHECK(other->paths[0].peer_qpn == second->paths[0].queues.qp->qp_num);
  a.plane().close(listener);
}

TEST_CASE("connect: both ends use the configured traffic class and service level",
          "[component][connect]") {
  ControlOptions wishing = control_options();
  wishing.qp.traffic_class = 106;
  wishing.qp.service_level = 3;
  const TestFabric fabric;
  const auto table = scan(fabric);
  Party a(*table, wishing);
  Party b(*table);
  const CommPair comm = join(a, b);
  for (const Connection* end : {comm.sender.get(), comm.receiver.get()}) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    BL_MUST_OK(ibv_query_qp(end->paths[0].queues.qp.get(), &attr, IBV_QP_AV, &init));
    CHECK(attr.ah_attr.grh.traffic_class == 106);
    CHECK(int{attr.ah_attr.sl} == 3);
    CHECK(int{attr.ah_attr.is_global} == 1);
    CHECK(int{attr.ah_attr.port_num} == 1);
  }
}

namespace {

int traffic_class_of(const Connection& end) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  BL_MUST_OK(ibv_query_qp(end.paths[0].queues.qp.get(), &attr, IBV_QP_AV, &init));
  return attr.ah_attr.grh.traffic_class;
}

// The traffic class of both ends of a connection between communicators with these settings.
int traffic_class_between(const CommSettings& listening, const CommSettings& connecting,
                          int set_by_hand = -1) {
  ControlOptions options = control_options();
  options.qp.traffic_class = set_by_hand;
  const TestFabric fabric;
  const auto table = scan(fabric);
  Party a(*table, options);
  Party b(*table, options);
  Ticket ticket;
  Listener* const listener = a.listen(ticket, "softnic0", listening);
  CommPair comm;
  wait_for(
      [&] {
        if (comm.sender == nullptr) comm.sender = must(b.connect(ticket, "softnic1", connecting));
        if (comm.receiver == nullptr) comm.receiver = must(a.accept(listener));
        return comm.sender != nullptr && comm.receiver != nullptr;
      },
      "a comm");
  BL_MUST(traffic_class_of(*comm.sender) == traffic_class_of(*comm.receiver));
  return traffic_class_of(*comm.sender);
}

}  // namespace

TEST_CASE("connect: a communicator's traffic class reaches both queue pairs",
          "[component][connect]") {
  CHECK(traffic_class_between({.traffic_class = 96}, {.traffic_class = 96}) == 96);
  CHECK(traffic_class_between({}, {.traffic_class = 64}) == 64);
  CHECK(traffic_class_between({.traffic_class = 32}, {}) == 32);
}

TEST_CASE(
    "connect: a traffic class that is set by a variable takes precedence over a communicator's",
    "[component][connect]") {
  CHECK(traffic_class_between({.traffic_class = 96}, {.traffic_class = 96}, 106) == 106);
}
