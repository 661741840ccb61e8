// SPDX-License-Identifier: Apache-2.0
//
// The devices that NCCL sees, and merging them.
#include "plugin/device/net_devices.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

std::vector<Device> ports(std::size_t count) {
  std::vector<Device> devices(count);
  for (std::size_t i = 0; i < count; ++i) {
    devices[i].index = static_cast<int>(i);
    devices[i].ibdev = "mlx5_" + std::to_string(i);
    devices[i].name = "beeline_" + devices[i].ibdev;
    devices[i].facts.speed_mbps = 100'000;
  }
  return devices;
}

std::vector<std::vector<const Device*>> each_alone(const std::vector<Device>& devices) {
  std::vector<std::vector<const Device*>> groups;
  groups.reserve(devices.size());
  for (const Device& device : devices) groups.push_back({&device});
  return groups;
}

struct Host {
  explicit Host(std::size_t count) : devices(ports(count)), net(each_alone(devices)) {}

  // The number of the merged device.
  int merge(const std::vector<int>& indices) {
    const auto merged = net.merge(indices);
    REQUIRE(merged);
    return (*merged)->index;
  }
  std::string refusal(const std::vector<int>& indices, Errc code = Errc::kInvalid) {
    const auto merged = net.merge(indices);
    REQUIRE_FALSE(merged);
    CHECK(merged.error().code == code);
    return merged.error().text;
  }

  std::vector<Device> devices;
  NetDevices net;
};

TEST_CASE("net devices: the first ones are the ports, with their names and numbers",
          "[unit][device]") {
  const Host host(2);
  REQUIRE(host.net.count() == 2);
  const NetDevice& second = *host.net.find(1);
  CHECK(second.index == 1);
  CHECK(second.name == "beeline_mlx5_1");
  CHECK(second.speed_mbps == 100'000);
  CHECK(second.members == std::vector<const Device*>{&host.devices[1]});
  CHECK(second.merged == std::vector<int>{1});
  CHECK(host.net.find(2) == nullptr);
  CHECK(host.net.find(-1) == nullptr);
  CHECK(host.net.find(1 << 20) == nullptr);
}

TEST_CASE("net devices: merged ones follow, and the others stay where they are", "[unit][device]") {
  Host host(4);
  const NetDevice* const before = host.net.find(0);
  CHECK(host.merge({0, 1}) == 4);
  CHECK(host.merge({2, 3}) == 5);
  CHECK(host.net.count() == 6);
  CHECK(host.net.first_count() == 4);
  CHECK(host.net.find(0) == before);
  const NetDevice& merged = *host.net.find(5);
  CHECK(merged.name == "beeline_mlx5_2+mlx5_3");
  CHECK(merged.speed_mbps == 200'000);
  CHECK(merged.merged == std::vector<int>{2, 3});
  REQUIRE(merged.rails().size() == 2);
  CHECK(merged.rails()[0] == &host.devices[2]);
  CHECK(merged.rails()[1] == &host.devices[3]);
  CHECK(host.net.with_rails(merged.rails()) == &merged);
  CHECK(host.net.with_rails({}) == nullptr);
}

TEST_CASE("net devices: merging the same devices again gives the same device", "[unit][device]") {
  Host host(4);
  CHECK(host.merge({0, 1}) == 4);
  CHECK(host.merge({2, 3}) == 5);
  CHECK(host.merge({0, 1}) == 4);
  CHECK(host.net.count() == 6);
  CHECK(host.merge({3}) == 6);  // a device with the same name
  CHECK(host.net.find(6)->name == host.net.find(3)->name);
  CHECK(host.net.count() == 7);
}

TEST_CASE("net devices: numbers that make no sense are refused by a sentence", "[unit][device]") {
  Host host(3);
  host.merge({0, 1});
  CHECK(host.refusal({}) == "no device can be made of 0 devices");
  CHECK(host.refusal({0, 7}) ==
        "devices 0, 7 cannot be merged: there is no unmerged device 7; the highest number is 2");
  CHECK(host.refusal({0, 3}).ends_with("there is no unmerged device 3; the highest number is 2"));
  CHECK(host.refusal({-1, 0}).ends_with("there is no unmerged device -1; the highest number is 2"));
  CHECK(host.refusal({2, 2}) == "devices 2, 2 cannot be merged: 2 is named twice");
  CHECK(host.net.count() == 4);
}

TEST_CASE("net devices: ports of different kinds are not merged", "[unit][device]") {
  Host host(2);
  host.devices[1].transport = Transport::kInfiniBand;
  CHECK(host.refusal({0, 1}, Errc::kUnsupported) ==
        "devices 0, 1 cannot be merged: mlx5_0 port 1 is RoCE and mlx5_1 port 1 is InfiniBand; "
        "merge devices of one kind");
  CHECK(host.net.count() == 2);
}

TEST_CASE("net devices: eight ports can be merged, and nine cannot", "[unit][device]") {
  Host host(9);
  CHECK(host.merge({0, 1, 2, 3, 4, 5, 6, 7}) == 9);
  CHECK(host.refusal({0, 1, 2, 3, 4, 5, 6, 7, 8}, Errc::kUnsupported)
            .ends_with("they have 9 ports, and a connection uses at most 8; merge fewer"));
}

TEST_CASE("net devices: at most 256 devices can exist", "[unit][device]") {
  Host host(24);
  std::size_t merged = 24;
  for (int i = 0; i < 24 && merged < NetDevices::kMost; ++i) {
    for (int j = i + 1; j < 24 && merged < NetDevices::kMost; ++j, ++merged) host.merge({i, j});
  }
  CHECK(host.net.count() == NetDevices::kMost);
  CHECK(host.refusal({23, 22}, Errc::kUnsupported).ends_with("there are 256 devices already"));
  CHECK(host.merge({0, 1}) == 24);
}

TEST_CASE("net devices: a name that NCCL could not keep is replaced by a short one",
          "[unit][device]") {
  std::vector<Device> devices = ports(4);
  for (Device& device : devices) device.name += std::string(60, 'x');
  NetDevices net(each_alone(devices));
  REQUIRE(net.merge(std::vector<int>{0, 1}));
  CHECK(net.find(4)->name.size() < 200);
  REQUIRE(net.merge(std::vector<int>{0, 1, 2, 3}));
  CHECK(net.find(5)->name == devices[0].name + "+3_v5");
}

TEST_CASE("net devices: groups of the plugin are devices as well", "[unit][device]") {
  const std::vector<Device> devices = ports(3);
  const NetDevices net({{&devices[0], &devices[1]}, {&devices[2]}});
  REQUIRE(net.count() == 2);
  CHECK(net.find(0)->name == "beeline_mlx5_0+mlx5_1");
  CHECK(net.find(0)->merged == std::vector<int>{0});
  CHECK(net.find(1)->name == "beeline_mlx5_2");
}

}  // namespace
}  // namespace beeline
