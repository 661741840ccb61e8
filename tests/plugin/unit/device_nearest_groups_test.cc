// SPDX-License-Identifier: Apache-2.0
//
// Which ports BEELINE_RAILS merges.
#include "plugin/device/nearest_groups.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

struct Place {
  const char* name;
  const char* path;  // of the card, below /sys/devices
  int numa_node = 0;
  Transport transport = Transport::kRoce;
  int rail = -1;
};

std::vector<Device> devices_at(const std::vector<Place>& places) {
  std::vector<Device> devices;
  for (const Place& place : places) {
    Device& device = devices.emplace_back();
    device.index = static_cast<int>(devices.size()) - 1;
    device.ibdev = place.name;
    if (*place.path != '\0') device.card_path = std::string("/sys/devices/") + place.path;
    device.numa_node = place.numa_node;
    device.transport = place.transport;
    device.rail = place.rail;
  }
  return devices;
}

// "a b, c d": the groups in order, and their members in order.
std::string groups_of(const std::vector<Place>& places, std::size_t most) {
  const std::vector<Device> devices = devices_at(places);
  std::string text;
  for (const auto& group : group_nearest(devices, most)) {
    if (!text.empty()) text += ", ";
    for (const Device* const device : group) {
      if (device != group.front()) text += ' ';
      text += device->ibdev;
    }
  }
  return text;
}

// Two sockets, each with two switches, below each of them two NICs.
const std::vector<Place> kServer = {
    {"a", "pci0:1/1:0/2:0/3:0/4:0", 0}, {"b", "pci0:1/1:0/2:0/3:1/5:0", 0},
    {"c", "pci0:2/6:0/7:0/8:0/9:0", 0}, {"d", "pci0:2/6:0/7:0/8:1/a:0", 0},
    {"e", "pci0:3/b:0/c:0/d:0/e:0", 1}, {"f", "pci0:3/b:0/c:0/d:1/f:0", 1},
    {"g", "pci0:4/g:0/h:0/i:0/j:0", 1}, {"h", "pci0:4/g:0/h:0/i:1/k:0", 1},
};

TEST_CASE("nearest groups: NICs below one switch, then those of one socket", "[unit][device]") {
  CHECK(groups_of(kServer, 1) == "a, b, c, d, e, f, g, h");
  CHECK(groups_of(kServer, 2) == "a b, c d, e f, g h");
  CHECK(groups_of(kServer, 4) == "a b c d, e f g h");
}

TEST_CASE("nearest groups: never across NUMA nodes", "[unit][device]") {
  CHECK(groups_of(kServer, 8) == "a b c d, e f g h");
}

TEST_CASE("nearest groups: sizes are as equal as they can be", "[unit][device]") {
  CHECK(groups_of(kServer, 3) == "a b, c d, e f, g h");
  const std::vector<Place> five = {
      {"a", "p:0/1:0"}, {"b", "p:0/2:0"}, {"c", "p:0/3:0"}, {"d", "p:0/4:0"}, {"e", "p:0/5:0"}};
  CHECK(groups_of(five, 4) == "a b c, d e");
  CHECK(groups_of(five, 8) == "a b c d e");
}

TEST_CASE("nearest groups: a near pair is not split because of its place in the list",
          "[unit][device]") {
  CHECK(groups_of({{"a", "pci0:1/1:0/2:0"},
                   {"b", "pci0:1/3:0/4:0/5:0"},
                   {"c", "pci0:1/3:0/4:1/6:0"},
                   {"d", "pci0:1/7:0/8:0"}},
                  2) == "a d, b c");
}

TEST_CASE("nearest groups: the two ports of a card come together first", "[unit][device]") {
  CHECK(groups_of({{"a", "pci0:1/1:0/2:0/3:0"},
                   {"b", "pci0:1/1:0/2:1/4:0"},
                   {"b2", "pci0:1/1:0/2:1/4:0"},
                   {"c", "pci0:1/1:0/2:2/5:0"}},
                  2) == "a c, b b2");
}

TEST_CASE("nearest groups: one transport in each group", "[unit][device]") {
  CHECK(groups_of({{"a", "p:0/1:0", 0, Transport::kRoce},
                   {"b", "p:0/2:0", 0, Transport::kInfiniBand},
                   {"c", "p:0/3:0", 0, Transport::kRoce},
                   {"d", "p:0/4:0", 0, Transport::kInfiniBand}},
                  4) == "a c, b d");
}

TEST_CASE("nearest groups: soft devices have no place, and are merged with each other",
          "[unit][device]") {
  CHECK(groups_of({{"rxe0", "", -1}, {"rxe1", "", -1}, {"rxe2", "", -1}}, 2) == "rxe0 rxe1, rxe2");
  CHECK(groups_of({{"a", "p:0/1:0", -1}, {"rxe0", "", -1}, {"b", "p:0/2:0", -1}}, 2) ==
        "a b, rxe0");
}

TEST_CASE("nearest groups: the device filter may say in which order the rails are",
          "[unit][device]") {
  CHECK(groups_of({{"a", "p:0/1:0", 0, Transport::kRoce, 1},
                   {"b", "p:0/2:0", 0, Transport::kRoce, 0},
                   {"c", "p:0/3:0", 0}},
                  3) == "b a c");
}

TEST_CASE("nearest groups: without ports there are no groups", "[unit][device]") {
  CHECK(group_nearest({}, 4).empty());
}

}  // namespace
}  // namespace beeline
