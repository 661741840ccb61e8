// SPDX-License-Identifier: Apache-2.0
//
// The devices that `beeline perf` uses, merged or not.
#include "tools/perf/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tools/perf/plugin_log.h"

namespace beeline::perf {
namespace {

// A plugin that does nothing but list and merge devices. NCCL's functions have no argument for an
// object, so it is a static one.
struct FakeDevices {
  static constexpr int kPhysical = 5;
  std::vector<std::vector<int>> merged;
  std::vector<std::string> names;

  static FakeDevices& get() {
    static FakeDevices one;
    return one;
  }
};

ncclResult_t count_devices(int* count) {
  *count = FakeDevices::kPhysical + static_cast<int>(FakeDevices::get().merged.size());
  return ncclSuccess;
}

ncclResult_t fill_properties(int dev, ncclNetProperties_v12_t* props) {
  FakeDevices& fake = FakeDevices::get();
  *props = {};
  std::vector<int> members = {dev};
  if (dev >= FakeDevices::kPhysical) {
    members = fake.merged[static_cast<size_t>(dev - FakeDevices::kPhysical)];
  }
  props->vProps.ndevs = static_cast<int>(members.size());
  std::copy(members.begin(), members.end(), props->vProps.devs);
  props->name = fake.names[static_cast<size_t>(dev)].data();
  return ncclSuccess;
}

ncclResult_t merge(int* dev, ncclNetVDeviceProps_v12_t* parts) {
  count_devices(dev);
  FakeDevices::get().merged.emplace_back(parts->devs, parts->devs + parts->ndevs);
  return ncclSuccess;
}

ncclResult_t refuse(int* /*dev*/, ncclNetVDeviceProps_v12_t* /*parts*/) { return ncclInvalidUsage; }

Net fake_net(int abi) {
  FakeDevices& fake = FakeDevices::get();
  fake.merged.clear();
  fake.names.clear();
  for (int i = 0; i < 10; ++i) fake.names.push_back(fmt::format("beeline_nic{}", i));
  Net net;
  net.abi = abi;
  net.calls.name = "Fake";
  net.calls.devices = count_devices;
  net.calls.getProperties = fill_properties;
  if (abi >= 9) net.calls.makeVDevice = merge;
  return net;
}

std::string failure(const Net& net, int rails) {
  const auto merged = merge_devices(net, *list_devices(net), rails);
  return merged ? "" : merged.error().text;
}

TEST_CASE("devices: where there are none, a warning of the plugin is enough", "[tools][devices]") {
  Net net = fake_net(12);
  net.calls.devices = [](int* count) {
    *count = 0;
    return ncclSuccess;
  };
  const std::string softnic =
      ". Without RDMA hardware: softnic run -- beeline perf ... (package beeline-softnic)";
  set_plugin_log(0, NCCL_LOG_NONE);
  plugin_log(NCCL_LOG_WARN, 0, "", 0, "not shown");
  CHECK(list_devices(net).error().text ==
        "the plugin Fake found no devices; --log INFO may show why" + softnic);
  set_plugin_log(0, NCCL_LOG_WARN);
  plugin_log(NCCL_LOG_WARN, 0, "", 0, "shown");
  CHECK(list_devices(net).error().text ==
        "the plugin Fake found no devices; its warning above says why" + softnic);
}

TEST_CASE("devices: without --rails the comms take all devices in turn", "[tools][devices]") {
  const Net net = fake_net(12);
  const auto devices = merge_devices(net, *list_devices(net), 1);
  REQUIRE(devices);
  CHECK(devices->size() == 5);
  for (int comm = 0; comm < 7; ++comm) CHECK(*choose_device({}, *devices, comm, 0) == comm % 5);
}

TEST_CASE("devices: with --rails the comms take the merged ones and what was left over",
          "[tools][devices]") {
  const Net net = fake_net(12);
  const auto devices = merge_devices(net, *list_devices(net), 2);
  REQUIRE(devices);
  CHECK(FakeDevices::get().merged == std::vector<std::vector<int>>{{0, 1}, {2, 3}});
  CHECK(devices->size() == 7);
  const std::vector<int> in_turn = {4, 5, 6, 4};
  for (int comm = 0; comm < 4; ++comm) {
    CHECK(*choose_device({}, *devices, comm, 0) == in_turn[static_cast<size_t>(comm)]);
  }
  CHECK(*choose_device({{"nic1"}}, *devices, 0, 0) == 1);  // as the user says
  CHECK(describe_devices(net, *devices).find("made of 2 3\n") != std::string::npos);
}

TEST_CASE("devices: a device has a name, a port and a number", "[tools][devices]") {
  const Net net = fake_net(12);
  FakeDevices::get().names[1] = "beeline_mlx5_0";
  FakeDevices::get().names[2] = "beeline_mlx5_0_p2";
  FakeDevices::get().names[5] = "beeline_nic3+nic4";
  auto devices = *merge_devices(net, *list_devices(net), 2);
  devices[1].props.port = 1;
  devices[2].props.port = 2;
  for (const char* const name : {"beeline_mlx5_0", "mlx5_0", "mlx5_0:1", "1"}) {
    CHECK(*find_device(devices, name) == 1);
  }
  for (const char* const name : {"mlx5_0_p2", "mlx5_0:2"}) CHECK(*find_device(devices, name) == 2);
  CHECK(*find_device(devices, "nic3+nic4") == 5);
  CHECK(find_device(devices, "mlx5_O")
            .error()
            .text.starts_with("--dev: there is no device mlx5_O; did you mean mlx5_0? There are 0 "
                              "beeline_nic0, 1 "));
  CHECK(find_device(devices, "mlx5_0:3").error().text.find("There are 0") != std::string::npos);
  CHECK(find_device(devices, "17")
            .error()
            .text.starts_with("--dev: there is no device 17; there are 0 beeline_nic0, "));
}

TEST_CASE("devices: --rails fails where the plugin cannot merge so many", "[tools][devices]") {
  CHECK(failure(fake_net(8), 2) ==
        "--rails 2: the table v8 of this plugin cannot merge devices (makeVDevice, v9 and later); "
        "Beeline merges them itself with --env BEELINE_RAILS=2");
  CHECK(failure(fake_net(11), 5) == "--rails 5: v11 merges at most 4 devices");
  CHECK(failure(fake_net(12), 6) ==
        "--rails 6: the plugin Fake has fewer devices: 0 beeline_nic0, 1 beeline_nic1, "
        "2 beeline_nic2, 3 beeline_nic3, 4 beeline_nic4; use --rails 5 or less, or let the plugin "
        "use more NICs (NCCL_IB_HCA)");
  Net net = fake_net(12);
  net.calls.makeVDevice = refuse;
  CHECK(failure(net, 5).find("makeVDevice") != std::string::npos);
}

}  // namespace
}  // namespace beeline::perf
