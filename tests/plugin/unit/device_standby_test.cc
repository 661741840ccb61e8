// SPDX-License-Identifier: Apache-2.0
//
// Which devices stand in for one that is gone, and in which order.
#include "plugin/device/standby_devices.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

struct PciPlace {
  const char* name;
  const char* pci_path;  // below /sys/devices
  int numa_node = 0;
  Transport transport = Transport::kRoce;
};

// The names of those that stand in for the device with this index.
std::string standbys_of(std::size_t own, const std::vector<PciPlace>& places) {
  std::vector<Device> all;
  for (const PciPlace& place : places) {
    Device& device = all.emplace_back();
    device.index = static_cast<int>(all.size()) - 1;
    device.ibdev = place.name;
    device.pci_path = std::string("/sys/devices/") + place.pci_path;
    device.numa_node = place.numa_node;
    device.transport = place.transport;
  }
  const StandbyDevices standbys(all);
  std::string names;
  for (const Device* const one : standbys.of(all[own])) {
    names += (names.empty() ? "" : " ") + one->ibdev;
  }
  return names;
}

}  // namespace

TEST_CASE("standby: the nearest device comes first", "[unit][device]") {
  const std::vector<PciPlace> places = {
      {"far", "pci1/bridge/card", 1},
      {"own", "pci0/switch0/card0"},
      {"same node", "pci0/switch1/card"},
      {"same switch", "pci0/switch0/card1"},
      // Nearer by its path, but of another node.
      {"other node", "pci0/switch0/card2", 1},
  };
  CHECK(standbys_of(1, places) == "same switch same node other node far");
}

TEST_CASE("standby: several devices that fail choose different ones", "[unit][device]") {
  const std::vector<PciPlace> places = {
      {"a", "pci0/a"}, {"b", "pci0/b"}, {"c", "pci0/c"}, {"d", "pci0/d"}};
  // Also if a and b are merged, or c and d.
  CHECK(standbys_of(0, places) == "c d b");
  CHECK(standbys_of(1, places) == "d a c");
  CHECK(standbys_of(2, places) == "a b d");
  CHECK(standbys_of(3, places) == "b c a");
}

TEST_CASE("standby: a device of another transport does not stand in", "[unit][device]") {
  const std::vector<PciPlace> places = {
      {"a", "pci0/a"}, {"b", "pci0/b", 0, Transport::kIwarp}, {"c", "pci0/c"}};
  CHECK(standbys_of(0, places) == "c");
  CHECK(standbys_of(1, places).empty());
}

}  // namespace beeline
