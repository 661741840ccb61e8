// SPDX-License-Identifier: Apache-2.0
//
// Error texts about connections, and the conversion between the types of the plugin and of the
// wire.
#include <cerrno>
#include <string>

#include "plugin/connect/cm/cm_text.h"
#include "plugin/connect/path/wire_conversion.h"
#include "plugin/connect/socket/socket.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Error system_error(int sys_errno) { return {Errc::kSystem, sys_errno, "do it"}; }

wire::SocketAddress ipv4(std::uint8_t last) {
  wire::SocketAddress address{.kind = wire::AddressKind::kIpv4};
  address.bytes = {10, 0, 0, last};
  return address;
}

Device siw() {
  Device device;
  device.ibdev = "siw0";
  device.netdev = "eth2";
  return device;
}

}  // namespace

TEST_CASE("words: advice on missing descriptors names the limit", "[unit][connect]") {
  CHECK(has(fd_advice(system_error(EMFILE)), "raise the limit with ulimit -n, up to "));
  CHECK(has(fd_advice(system_error(ENFILE)), "sysctl fs.file-max"));
  CHECK(fd_advice(system_error(ENOMEM)).empty());
}

TEST_CASE("words: without the connection manager's device, the text says which module to load",
          "[unit][connect]") {
  for (const int absent : {ENOENT, ENODEV, ENXIO}) {
    CHECK(has(no_channel_text(system_error(absent)), "modprobe rdma_ucm"));
  }
  CHECK(has(no_channel_text(system_error(EACCES)), "Permission denied"));
  CHECK_FALSE(has(no_channel_text(system_error(EACCES)), "modprobe"));
  CHECK(has(no_netdev_text(siw()), "siw0 on eth2 has no network interface"));
}

TEST_CASE("words: only failures that a route may cause come with advice on routes",
          "[unit][connect]") {
  const Device device = siw();
  const CmEnds ends{.device = &device, .ours = ipv4(1), .theirs = ipv4(2), .peer = "h1 siw0"};
  for (const int away : {ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, ENODEV}) {
    CHECK(has(step_failure_text(system_error(away), ends),
              "(ip route get 10.0.0.2 from 10.0.0.1; ping -I eth2 10.0.0.2)"));
  }
  CHECK_FALSE(has(step_failure_text(system_error(ENOMEM), ends), "ip route"));
}

TEST_CASE("words: each event of the connection manager has its own text", "[unit][connect]") {
  const Device device = siw();
  const CmEnds ends{.device = &device, .ours = ipv4(1), .theirs = ipv4(2), .peer = "h1 siw0"};
  const auto told = [&](rdma_cm_event_type type) {
    verbs::CmEvent event;
    event.type = type;
    event.status = -ECONNREFUSED;
    return event_failure_text(event, "connecting", ends);
  };
  CHECK(has(told(RDMA_CM_EVENT_DEVICE_REMOVAL), "the device was removed (Connection refused)"));
  CHECK_FALSE(has(told(RDMA_CM_EVENT_DEVICE_REMOVAL), "ip route"));
  CHECK(has(told(RDMA_CM_EVENT_ADDR_CHANGE), "address changed"));
  CHECK(has(told(RDMA_CM_EVENT_ADDR_CHANGE), "ip route"));
  CHECK(has(told(RDMA_CM_EVENT_MULTICAST_ERROR), "an unexpected event arrived"));
}

TEST_CASE("words: GID settings survive the conversion to the wire and back", "[unit][connect]") {
  const AddressFamily family =
      GENERATE(AddressFamily::kUnset, AddressFamily::kIpv4, AddressFamily::kIpv6);
  QpOptions options;
  options.gid = {.fixed_index = 3,
                 .roce_version = 2,
                 .family = family,
                 .range = GidRange{.base = {0xfe, 0x80}, .prefix = 10}};
  const GidPolicy arrived = gid_policy(settings_of(options, options.gid));
  CHECK(arrived.fixed_index == 3);
  CHECK(arrived.roce_version == 2);
  CHECK(arrived.family == family);
  REQUIRE(arrived.range);
  CHECK(arrived.range->base == options.gid.range->base);
  CHECK(arrived.range->prefix == 10);
  options.gid.range.reset();
  CHECK_FALSE(gid_policy(settings_of(options, options.gid)).range);
}

TEST_CASE("words: vendor options survive the conversion to the wire and back", "[unit][connect]") {
  const ibv_ece ece{.vendor_id = 0x15b3, .options = 0x3000'0002, .comp_mask = 1};
  const ibv_ece arrived = to_ibv(to_wire(ece));
  CHECK(arrived.vendor_id == ece.vendor_id);
  CHECK(arrived.options == ece.options);
  CHECK(arrived.comp_mask == ece.comp_mask);
}
