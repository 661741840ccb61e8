// SPDX-License-Identifier: Apache-2.0
//
// Faults as seen through verbs: events, queries, and devices that are removed and come back.
#include <endian.h>
#include <fcntl.h>

#include <cerrno>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

std::vector<std::string> device_names() {
  const DeviceList list;
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(list.count()));
  for (int i = 0; i < list.count(); ++i) names.emplace_back(ibv_get_device_name(list[i]));
  BL_MUST(list[list.count()] == nullptr);
  return names;
}

// The errno of a call that returns -1.
template <class Call>
int errno_of(Call call) {
  errno = 0;
  BL_MUST(call() == -1);
  return errno;
}

}  // namespace

TEST_CASE("fault_event: a queue pair and a completion queue break with their events",
          "[softnic][fault]") {
  Pair pair;
  ibv_context* const context = pair.a.context.get();
  pair.fabric.command("h0/softnic0", "event=qp_fatal");
  ibv_async_event event = next_event(context);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == pair.a.qp);
  wait_for_state(pair.a.qp, IBV_QPS_ERR);
  pair.fabric.command("h0/softnic0", "event=cq_err");
  event = next_event(context);
  CHECK(event.event_type == IBV_EVENT_CQ_ERR);
  ibv_wc wc{};
  CHECK(ibv_poll_cq(event.element.cq, 1, &wc) == -1);
}

TEST_CASE("fault_event: injected events carry their port and change nothing", "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  const ContextPtr other = open_device("softnic1");
  for (const auto& [name, type] :
       {std::pair{"port_err", IBV_EVENT_PORT_ERR}, std::pair{"port_active", IBV_EVENT_PORT_ACTIVE},
        std::pair{"lid_change", IBV_EVENT_LID_CHANGE}, std::pair{"sm_change", IBV_EVENT_SM_CHANGE},
        std::pair{"gid_change", IBV_EVENT_GID_CHANGE},
        std::pair{"pkey_change", IBV_EVENT_PKEY_CHANGE},
        std::pair{"client_reregister", IBV_EVENT_CLIENT_REREGISTER}}) {
    fabric.command("h0/softnic0", std::string("event=") + name);
    const ibv_async_event event = next_event(context.get());
    CHECK(event.event_type == type);
    CHECK(event.element.port_num == 1);
    ibv_port_attr port{};
    REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
    CHECK(port.state == IBV_PORT_ACTIVE);
  }
  CHECK(!has_event(context.get()));
  CHECK(!has_event(other.get()));
  // A real change after an injected event of the same type causes an event as well.
  fabric.command("h0/softnic0", "event=port_err");
  fabric.command("h0/softnic0", "down");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ERR);
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ERR);
}

TEST_CASE("fault_event: an injected device event has no port and no effect", "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "event=device_fatal");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  CHECK(event.element.port_num == 0);
  ibv_device_attr attr{};
  CHECK(ibv_query_device(context.get(), &attr) == 0);
}

TEST_CASE("fault_event: a P_Key change causes an event, and queries return the new one",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  __be16 pkey = 0;
  REQUIRE(ibv_query_pkey(context.get(), 1, 0, &pkey) == 0);
  CHECK(be16toh(pkey) == 0xffff);
  fabric.command("h0/softnic0", "pkey=0x8001");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_PKEY_CHANGE);
  CHECK(event.element.port_num == 1);
  REQUIRE(ibv_query_pkey(context.get(), 1, 0, &pkey) == 0);
  CHECK(be16toh(pkey) == 0x8001);
  CHECK(ibv_get_pkey_index(context.get(), 1, htobe16(0x8001)) == 0);
  CHECK(errno_of([&] { return ibv_get_pkey_index(context.get(), 1, htobe16(0xffff)); }) == EINVAL);
  fabric.command("h0/softnic0", "reset");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PKEY_CHANGE);
  CHECK(ibv_get_pkey_index(context.get(), 1, htobe16(0xffff)) == 0);
  fabric.command("h0/softnic0", "reset");
  CHECK(!has_event(context.get()));
}

TEST_CASE("fault_event: a GID change causes an event, and queries return the new one",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "gid=3:fe80::7");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_GID_CHANGE);
  CHECK(event.element.port_num == 1);
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(context.get(), 1, 3, &gid) == 0);
  CHECK(gid.raw[0] == 0xfe);
  CHECK(gid.raw[15] == 7);
  ibv_gid_entry entry{};
  fabric.command("h0/softnic0", "gid=3:none");
  CHECK(ibv_query_gid_ex(context.get(), 1, 3, &entry, 0) == ENODATA);
}

TEST_CASE("fault_event: a LID change causes an event, and queries return the new one",
          "[softnic][fault]") {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.hosts[0].devices[0].link_layer = softnic::LinkLayer::kInfiniBand;
  const TestFabric fabric(spec);
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "lid=777");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_LID_CHANGE);
  CHECK(event.element.port_num == 1);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(port.lid == 777);
}

TEST_CASE("fault_event: a device that hides events reports no change of its ports",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "hide-events=on");
  fabric.command("h0/softnic0", "down");
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(port.state == IBV_PORT_DOWN);
  CHECK(!has_event(context.get()));
  fabric.command("h0/softnic0", "event=port_err");  // late
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ERR);
  fabric.command("h0/softnic0", "hide-events=off");
  fabric.command("h0/softnic0", "up");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ACTIVE);
}

TEST_CASE("fault_event: a removal causes one event and the device leaves the list",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  const ContextPtr other = open_device("softnic1");
  fabric.command("h0/softnic0", "remove");
  fabric.command("h0/softnic0", "remove");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  CHECK(event.element.port_num == 0);
  CHECK(!has_event(context.get()));
  CHECK(!has_event(other.get()));
  CHECK(device_names() == std::vector<std::string>{"softnic1"});
  fabric.command("h0/softnic0", "return");
  CHECK(device_names() == std::vector<std::string>{"softnic0", "softnic1"});
}

TEST_CASE("fault_event: an entry of an old list cannot be opened", "[softnic][fault]") {
  const TestFabric fabric;
  const DeviceList old;
  REQUIRE(old.count() == 2);
  fabric.command("h0/softnic0", "remove");
  errno = 0;
  CHECK(ibv_open_device(old[0]) == nullptr);
  CHECK(errno == ENODEV);
  const ContextPtr other(ibv_open_device(old[1]));
  CHECK(other != nullptr);
  fabric.command("h0/softnic0", "return");
  errno = 0;
  CHECK(ibv_open_device(old[0]) == nullptr);
  CHECK(errno == ENODEV);
  CHECK(open_device("softnic0") != nullptr);
}

TEST_CASE("fault_event: queries of a dead context fail with EIO, also when the device is back",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  const auto check_dead = [&] {
    ibv_device_attr device{};
    ibv_device_attr_ex device_ex{};
    ibv_port_attr port{};
    ibv_gid gid{};
    ibv_gid_entry entry{};
    __be16 pkey = 0;
    CHECK(ibv_query_device(context.get(), &device) == EIO);
    CHECK(ibv_query_device_ex(context.get(), nullptr, &device_ex) == EIO);
    CHECK(ibv_query_port(context.get(), 1, &port) == EIO);
    CHECK(errno_of([&] { return ibv_query_gid(context.get(), 1, 0, &gid); }) == EIO);
    CHECK(ibv_query_gid_ex(context.get(), 1, 0, &entry, 0) == EIO);
    CHECK(ibv_query_gid_table(context.get(), &entry, 1, 0) == -EIO);
    CHECK(errno_of([&] { return ibv_query_pkey(context.get(), 1, 0, &pkey); }) == EIO);
    CHECK(errno_of([&] { return ibv_get_pkey_index(context.get(), 1, htobe16(0xffff)); }) == EIO);
  };
  fabric.command("h0/softnic0", "remove");
  check_dead();
  fabric.command("h0/softnic0", "return");
  check_dead();
  const ContextPtr fresh = open_device("softnic0");
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(fresh.get(), 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(!has_event(fresh.get()));
}

TEST_CASE("fault_event: a dead context gets no events after the device is back",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr dead = open_device("softnic0");
  fabric.command("h0/softnic0", "remove");
  fabric.command("h0/softnic0", "return");
  const ContextPtr fresh = open_device("softnic0");
  fabric.command("h0/softnic0", "down");
  CHECK(next_event(fresh.get()).event_type == IBV_EVENT_PORT_ERR);
  fabric.command("h0/softnic0", "remove");
  CHECK(next_event(fresh.get()).event_type == IBV_EVENT_DEVICE_FATAL);
  CHECK(next_event(dead.get()).event_type == IBV_EVENT_DEVICE_FATAL);
  REQUIRE(fcntl(dead->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event none{};
  CHECK(errno_of([&] { return ibv_get_async_event(dead.get(), &none); }) == EAGAIN);
  CHECK(!has_event(fresh.get()));
}

TEST_CASE("fault_event: objects of a removed device can be destroyed and closed",
          "[softnic][fault]") {
  const TestFabric fabric;
  {
    Endpoint a("softnic0");
    Endpoint b("softnic1");
    Buffer memory = a.buffer(64);
    connect_both(a.qp, b.qp);
    fabric.command("h0/softnic0", "remove");
  }
  fabric.command("h0/softnic0", "return");
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  REQUIRE(post(a.qp, nothing_work(1)) == 0);
  must_complete(a.send_cq.get(), 1);
}

TEST_CASE("fault_event: the next removal sends an event that was never sent", "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  // Removed and put back by processes that died half-way.
  fabric.fabric().header().devices[0].removals.store(2);
  fabric.command("h0/softnic0", "remove");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_DEVICE_FATAL);
  fabric.command("h0/softnic0", "return");
  fabric.command("h0/softnic0", "remove");
  // The event was sent already.
  REQUIRE(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event none{};
  CHECK(errno_of([&] { return ibv_get_async_event(context.get(), &none); }) == EAGAIN);
}
