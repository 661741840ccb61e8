// SPDX-License-Identifier: Apache-2.0
//
// The device scan on softnic: which devices it finds and leaves out, what it knows of them, and
// what it logs.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/device/port_facts.h"
#include "plugin/verbs/async_event.h"
#include "plugin/verbs/query.h"
#include "tests/plugin/component/device_rig.h"
#include "tests/support/found.h"
#include "tests/support/must.h"

namespace beeline::test {
namespace {

std::vector<std::string> names_of(const DeviceTable& table) {
  std::vector<std::string> names;
  for (const Device& device : table.devices()) names.push_back(device.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("scan: finds the devices of its host, under names of its own", "[component][device]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  CHECK(names_of(*table) == Names{"beeline_softnic0", "beeline_softnic1"});
  CHECK(table->contexts().size() == 2);
  for (const Device& device : table->devices()) {
    CHECK(device.index == &device - table->devices().data());
    CHECK(device.context->index() == device.index);
    CHECK(table->contexts()[static_cast<std::size_t>(device.index)].get() == device.context);
    CHECK(device.transport == Transport::kRoce);
    CHECK(device.link_layer == LinkLayer::kEthernet);
    CHECK(device.guid != 0);
    CHECK(device.facts.is_active());
    CHECK(device.facts.speed_mbps == 100'000);
    CHECK(device.facts.active_mtu == IBV_MTU_4096);
    CHECK(device.facts.pkeys == std::vector<std::uint16_t>{0xffff});
    CHECK(device.caps.immediate);
    CHECK_FALSE(device.caps.adaptive_routing);
    CHECK(device.caps.max_rd_atomic == 16);
    CHECK(device.caps.max_msg_bytes == 1u << 30);
  }
  CHECK(table->devices()[0].guid != table->devices()[1].guid);
}

TEST_CASE("scan: finds the PCI path and NUMA node of a device", "[component][device]") {
  const TestFabric fabric(fabric_file("dgx-8rail.toml"));
  const auto table = scan(fabric);
  REQUIRE(table->devices().size() == 8);
  const std::string root = fabric.fabric().sysfs_root("h0");
  const Device& fourth = find_device(*table, "softnic3");
  CHECK(fourth.pci_path.ends_with("/0000:37:01.0/0000:38:00.0/0000:39:01.0/0000:3b:00.0"));
  CHECK(fourth.numa_node == 0);
  CHECK(find_device(*table, "softnic4").numa_node == 1);
  CHECK(fourth.facts.speed_mbps == 400'000);
}

TEST_CASE("scan: orders by PCI address, unless it is told not to", "[component][device]") {
  softnic::FabricSpec spec = softnic::default_fabric();
  for (softnic::HostSpec& host : spec.hosts) std::swap(host.devices[0].pci, host.devices[1].pci);
  const TestFabric fabric(std::move(spec));
  TestFabric::choose_host("h0");
  DeviceOptions options = device_options(fabric);
  CHECK(names_of(*must(DeviceTable::scan(softnic_api(), options))) ==
        Names{"beeline_softnic1", "beeline_softnic0"});
  options.pci_order = false;
  CHECK(names_of(*must(DeviceTable::scan(softnic_api(), options))) ==
        Names{"beeline_softnic0", "beeline_softnic1"});
}

TEST_CASE("scan: without sysfs a device has no PCI path, and all else", "[component][device]") {
  const TestFabric fabric;
  DeviceOptions options = device_options(fabric);
  options.sysfs_root = "/nonexistent";
  const auto table = must(DeviceTable::scan(softnic_api(), options));
  REQUIRE(table->devices().size() == 2);
  CHECK(table->devices()[0].pci_path.empty());
  CHECK(table->devices()[0].numa_node == -1);
  CHECK(table->devices()[0].facts.gids.size() == 4);
}

TEST_CASE("scan: two ports of one device share its context", "[component][device]") {
  softnic::FabricSpec spec = fabric_file("asymmetric.toml");
  for (softnic::HostSpec& host : spec.hosts) {
    for (softnic::DeviceSpec& device : host.devices) {
      for (softnic::PortSpec& port : device.ports) port.up = true;
    }
  }
  const TestFabric fabric(std::move(spec));
  const auto table = scan(fabric, "h1", "dual0");
  REQUIRE(names_of(*table) == Names{"beeline_dual0", "beeline_dual0_p2"});
  const Device& first = table->devices()[0];
  const Device& second = table->devices()[1];
  CHECK(first.context == second.context);
  CHECK(table->contexts().size() == 1);
  CHECK(first.guid == second.guid);
  CHECK(first.port != second.port);
  CHECK(must(first.context->pd()) == must(second.context->pd()));
  CHECK(first.facts.gids.at(0).gid != second.facts.gids.at(0).gid);
}

TEST_CASE("scan: a port that is down is not used, and is named once", "[component][device]") {
  const TestFabric fabric(fabric_file("asymmetric.toml"));
  const auto table = scan(fabric, "h1");
  const Found found(table->findings());
  INFO(found.all_text());
  CHECK(found.count("dual0 port 2 is DOWN and not used") == 1);
  CHECK(found.count(Severity::kWarning) == 1);
  CHECK(found.has("port-not-active", Severity::kWarning, "dual0 port 2"));
}

TEST_CASE("scan: a port that the filter does not name may be down", "[component][device]") {
  const TestFabric fabric(fabric_file("asymmetric.toml"));
  const auto table = scan(fabric, "h1", "dual0:1");
  const Found found(table->findings());
  INFO(found.all_text());
  CHECK(names_of(*table) == Names{"beeline_dual0"});
  CHECK(found.count(Severity::kWarning) == 0);
  CHECK(found.has("device-filtered", Severity::kOk, "dual0:2"));
  CHECK(found.has("device-filtered", Severity::kOk, "ib0"));
}

TEST_CASE("scan: InfiniBand and sparse GID tables are seen as they are", "[component][device]") {
  const TestFabric fabric(fabric_file("asymmetric.toml"));
  const auto table = scan(fabric, "h1");
  const Device& ib = find_device(*table, "ib0");
  CHECK(ib.transport == Transport::kInfiniBand);
  CHECK(ib.facts.lid == 17);
  CHECK(ib.caps.adaptive_routing);
  const Device& given = find_device(*table, "given0");
  REQUIRE(given.facts.gids.size() == 2);
  CHECK(given.facts.gids[0].index == 0);
  CHECK(given.facts.gids[0].type == GidType::kRoceV1);
  CHECK(given.facts.gids[1].index == 5);
  CHECK(given.facts.gids[1].type == GidType::kRoceV2);
  CHECK(to_string(given.facts.gids[1].gid) == "192.168.7.1");
  CHECK(given.facts.gids[1].ndev == "storage0");
}

TEST_CASE("scan: an older library gives the same GID table, place by place",
          "[component][device]") {
  const TestFabric fabric(fabric_file("asymmetric.toml"));
  const auto table = scan(fabric, "h1");
  verbs::Api older = softnic_api();
  older.query_gid_table = nullptr;
  for (const Device& device : table->devices()) {
    CAPTURE(device.name);
    const auto port = must(verbs::query_port(older, device.context->raw(), device.port));
    const auto gids = read_gids(older, {device.context->raw(), device.ibdev, device.port},
                                port.attr, fabric.fabric().sysfs_root("h1"));
    CHECK(gids == device.facts.gids);
  }
}

TEST_CASE("scan: a filter that admits no device lists the devices", "[component][device]") {
  const TestFabric fabric;
  const auto table = scan(fabric, "h0", "mlx5_0");
  CHECK(table->devices().empty());
  const Found found(table->findings());
  INFO(found.all_text());
  CHECK(found.count(Severity::kWarning) == 1);
  CHECK(found.has("device-filter-leaves-none", Severity::kWarning, ""));
  CHECK(table->has_warned_of_no_device());
  CHECK(
      found.has("the device filter \"mlx5_0\" (NCCL_IB_HCA or BEELINE_HCA) leaves none of this "
                "host's RDMA devices: softnic0, "
                "softnic1"));
}

TEST_CASE("scan: a part of the filter that makes no sense is a warning", "[component][device]") {
  const TestFabric fabric;
  const auto table = scan(fabric, "h0", "softnic0,softnic1:x");
  CHECK(names_of(*table) == Names{"beeline_softnic0"});
  const Found found(table->findings());
  CHECK(found.has("device-filter-not-understood", Severity::kWarning, ""));
  CHECK(found.has("cannot read \"softnic1:x\""));
  CHECK_FALSE(table->has_warned_of_no_device());
}

// softnic's devices with the transport type of iWARP.
ibv_device** list_as_iwarp(int* count) {
  ibv_device** const list = softnic_api().get_device_list(count);
  for (int i = 0; list != nullptr && i < *count; ++i) {
    list[i]->transport_type = IBV_TRANSPORT_IWARP;
  }
  return list;
}

TEST_CASE("scan: iWARP waits for an option", "[component][device]") {
  const TestFabric fabric;
  TestFabric::choose_host("h0");
  verbs::Api api = softnic_api();
  api.get_device_list = list_as_iwarp;
  DeviceOptions options = device_options(fabric);
  {
    const auto table = must(DeviceTable::scan(api, options));
    CHECK(table->devices().empty());
    const Found found(table->findings());
    CHECK(found.has("device-unsupported", Severity::kNote, "softnic0 port 1"));
    CHECK(found.count("is iWARP, which needs librdmacm") == 2);
  }
  options.allow_iwarp = true;
  const auto table = must(DeviceTable::scan(api, options));
  REQUIRE(table->devices().size() == 2);
  CHECK(table->devices()[0].transport == Transport::kIwarp);
  CHECK_FALSE(table->devices()[0].caps.immediate);
}

TEST_CASE("scan: adaptive routing and relaxed ordering follow the options", "[component][device]") {
  const TestFabric fabric;
  TestFabric::choose_host("h0");
  DeviceOptions options = device_options(fabric);
  options.adaptive_routing = true;
  options.relaxed_ordering = false;
  const auto table = must(DeviceTable::scan(softnic_api(), options));
  CHECK(table->devices()[0].caps.adaptive_routing);
  CHECK_FALSE(table->devices()[0].caps.relaxed_ordering);
  CHECK(scan(fabric)->devices()[0].caps.relaxed_ordering);
}

// Reports an unknown link width.
int query_odd_port(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t) {
  const int rc = softnic_api().query_port_compat(context, port,
                                                 reinterpret_cast<_compat_ibv_port_attr*>(attr));
  attr->active_width = 64;
  return rc;
}

TEST_CASE("scan: an unknown link width is looked up in sysfs", "[component][device]") {
  const TestFabric fabric;
  TestFabric::choose_host("h0");
  verbs::Api api = softnic_api();
  api.open_device = [](ibv_device* device) {
    ibv_context* const context = softnic_api().open_device(device);
    if (context != nullptr) verbs_get_ctx(context)->query_port = query_odd_port;
    return context;
  };
  const auto table = must(DeviceTable::scan(api, device_options(fabric)));
  CHECK(table->devices()[0].facts.speed_mbps == 100'000);
  DeviceOptions blind = device_options(fabric);
  blind.sysfs_root = "/nonexistent";
  CHECK(must(DeviceTable::scan(api, blind))->devices()[0].facts.speed_mbps == 0);
}

TEST_CASE("scan: the effective speed takes precedence over the link's", "[component][device]") {
  const TestFabric fabric;
  TestFabric::choose_host("h0");
  verbs::Api api = softnic_api();
  api.query_port_speed = [](ibv_context*, std::uint32_t, std::uint64_t* speed) {
    *speed = 1234;
    return 0;
  };
  const auto table = must(DeviceTable::scan(api, device_options(fabric)));
  CHECK(table->devices()[0].facts.speed_mbps == 123'400);
}

TEST_CASE("scan: a device that cannot be opened is left out, and the others stay",
          "[component][device]") {
  const TestFabric fabric;
  TestFabric::choose_host("h0");
  verbs::Api api = softnic_api();
  api.open_device = [](ibv_device* device) -> ibv_context* {
    if (std::string("softnic0") != device->name) return softnic_api().open_device(device);
    errno = EACCES;
    return nullptr;
  };
  const auto table = must(DeviceTable::scan(api, device_options(fabric)));
  CHECK(names_of(*table) == Names{"beeline_softnic1"});
  const Found found(table->findings());
  CHECK(found.has("device-failed", Severity::kWarning, "softnic0"));
  CHECK(
      found.has("softnic0 is not used: open the RDMA device: Permission denied (denied). "
                "To fix it: make /dev/infiniband/uverbs*"));
}

TEST_CASE("device: its protection domain is created once, also when several threads ask",
          "[component][device]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  DeviceContext& context = *table->devices()[0].context;
  std::vector<ibv_pd*> seen(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (ibv_pd*& pd : seen) threads.emplace_back([&] { pd = must(context.pd()); });
  }
  CHECK(seen[0] != nullptr);
  CHECK(std::ranges::count(seen, seen[0]) == 8);
}

// Waits for the next event of the device.
verbs::AsyncEvent wait_event(const Device& device) {
  pollfd waiting{device.context->raw()->async_fd, POLLIN, 0};
  const auto patience = std::chrono::milliseconds(kPatience);
  BL_MUST(::poll(&waiting, 1, static_cast<int>(patience.count())) == 1);
  const auto event = must(verbs::next_event(device.api(), device.context->raw()));
  BL_MUST(event.has_value());
  return *event;
}

TEST_CASE("device: port events come without blocking, and a new reading shows the state",
          "[component][device]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const Device& device = table->devices()[0];
  CHECK(must(verbs::next_event(device.api(), device.context->raw())) == std::nullopt);

  fabric.command("h0/softnic0", "down");
  const verbs::AsyncEvent down = wait_event(device);
  CHECK(down.kind == verbs::EventKind::kPortError);
  CHECK(down.port == 1);
  CHECK_FALSE(must(table->read_port(device)).is_active());
  CHECK(device.facts.is_active());  // the facts of the scan do not change

  fabric.command("h0/softnic0", "up");
  CHECK(wait_event(device).kind == verbs::EventKind::kPortActive);
  CHECK(must(table->read_port(device)).is_active());
  CHECK(must(verbs::next_event(device.api(), device.context->raw())) == std::nullopt);
  CHECK(must(verbs::next_event(table->api(), table->devices()[1].context->raw())) == std::nullopt);
}

}  // namespace
}  // namespace beeline::test
