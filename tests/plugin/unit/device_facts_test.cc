// SPDX-License-Identifier: Apache-2.0
//
// Facts about devices: speed, PCI path, order, and advice on locked memory.
#include <cerrno>
#include <string>
#include <vector>

#include "plugin/device/device_scan.h"
#include "plugin/device/memlock.h"
#include "plugin/device/port_facts.h"
#include "plugin/device/sysfs.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

TEST_CASE("speed: lanes times the lane's rate", "[unit][device]") {
  CHECK(link_speed_mbps(2, 32, 0) == 100'000);   // 4X EDR
  CHECK(link_speed_mbps(2, 128, 0) == 400'000);  // 4X NDR
  CHECK(link_speed_mbps(4, 128, 0) == 800'000);  // 8X NDR
  CHECK(link_speed_mbps(1, 1, 0) == 2'500);
  CHECK(link_speed_mbps(16, 32, 0) == 50'000);  // 2X EDR
  CHECK(link_speed_mbps(2, 16, 0) == 56'000);
  CHECK(link_speed_mbps(8, 64, 0) == 600'000);
}

TEST_CASE("speed: old generations are known", "[unit][device]") {
  CHECK(link_speed_mbps(2, 2, 0) == 20'000);  // 4X DDR
  CHECK(link_speed_mbps(2, 4, 0) == 40'000);  // 4X QDR
  CHECK(link_speed_mbps(2, 8, 0) == 40'000);  // 4X FDR10
}

TEST_CASE("speed: XDR does not fit the old field", "[unit][device]") {
  CHECK(link_speed_mbps(2, 128, 256) == 800'000);
  CHECK(link_speed_mbps(2, 128, 64) == 200'000);
}

TEST_CASE("speed: an unknown code gives an unknown speed", "[unit][device]") {
  CHECK(link_speed_mbps(2, 3, 0) == 0);
  CHECK(link_speed_mbps(32, 32, 0) == 0);
  CHECK(link_speed_mbps(2, 128, 512) == 0);
}

TEST_CASE("speed: the kernel's text", "[unit][device]") {
  CHECK(parse_rate_mbps("400 Gb/sec (4X NDR)") == 400'000);
  CHECK(parse_rate_mbps("2.5 Gb/sec (1X SDR)") == 2'500);
  CHECK(parse_rate_mbps("") == 0);
  CHECK(parse_rate_mbps("fast") == 0);
  CHECK(parse_rate_mbps("400 Mb/sec") == 0);
  CHECK(parse_rate_mbps("-1 Gb/sec") == 0);
}

TEST_CASE("pci: a sub-function belongs to its parent's function", "[unit][device]") {
  CHECK(pci_function_of("/sys/devices/pci0000:15/0000:16:00.0") ==
        "/sys/devices/pci0000:15/0000:16:00.0");
  CHECK(pci_function_of("/sys/devices/pci0000:15/0000:16:00.0/mlx5_core.sf.4") ==
        "/sys/devices/pci0000:15/0000:16:00.0");
  CHECK(pci_function_of("/sys/devices/virtual/infiniband/rxe0").empty());
  CHECK(pci_function_of("").empty());
}

Device device_at(const char* ibdev, const char* pci, std::uint8_t port = 1) {
  Device device;
  device.ibdev = ibdev;
  device.port = port;
  device.pci_path = pci;
  return device;
}

TEST_CASE("order: PCI address, then port, then name with its number", "[unit][device]") {
  std::vector<Device> devices = {
      device_at("soft10", ""),
      device_at("soft9", ""),
      device_at("mlx5_0", "/sys/devices/pci0000:80/10000:01:00.0"),
      device_at("mlx5_1", "/sys/devices/pci0000:80/0000:9a:00.0", 2),
      device_at("mlx5_1", "/sys/devices/pci0000:80/0000:9a:00.0", 1),
      device_at("mlx5_2", "/sys/devices/pci0000:00/0000:1b:00.0"),
      device_at("mlx5_7", "/sys/devices/pci0000:00/0000:1b:00.0"),
  };
  sort_devices(devices);
  std::vector<std::string> labels;
  labels.reserve(devices.size());
  for (const Device& device : devices) labels.push_back(label(device));
  CHECK(labels == std::vector<std::string>{"mlx5_2 port 1", "mlx5_7 port 1", "mlx5_1 port 1",
                                           "mlx5_1 port 2", "mlx5_0 port 1", "soft9 port 1",
                                           "soft10 port 1"});
}

TEST_CASE("card: no two devices have the same GUID and port", "[unit][device]") {
  std::vector<Device> devices = {device_at("a", ""), device_at("b", ""), device_at("c", "", 1),
                                 device_at("c", "", 2)};
  devices[2].guid = devices[3].guid = 7;
  number_ports(devices);
  CHECK(devices[0].guid != 0);
  CHECK(devices[1].guid != 0);
  CHECK(devices[0].guid != devices[1].guid);
  CHECK(devices[2].guid == 7);  // two ports of one device: told apart by the port
  CHECK(devices[3].guid == 7);
  CHECK(devices[2].card_port == 1);
  CHECK(devices[3].card_port == 2);
}

TEST_CASE("card: the functions of one card are ports of it, and of another they are not",
          "[unit][device]") {
  std::vector<Device> devices = {device_at("mlx5_0", ""), device_at("mlx5_1", ""),
                                 device_at("mlx5_2", "")};
  for (Device& device : devices) device.guid = 7;
  devices[0].card_path = devices[1].card_path = "/sys/devices/pci0000:00/0000:1b:00.0";
  devices[2].card_path = "/sys/devices/pci0000:80/0000:9a:00.0";
  number_ports(devices);
  CHECK(devices[0].guid == 7);
  CHECK(devices[1].guid == 7);
  CHECK(devices[0].card_port == 1);
  CHECK(devices[1].card_port == 2);
  CHECK(devices[2].guid != 7);
  CHECK(devices[2].card_port == 1);
}

TEST_CASE("memlock: the limit is named when it is the reason", "[unit][device]") {
  const Error enomem{Errc::kNoMemory, ENOMEM, "register memory"};
  const std::string text =
      memlock_advice(enomem, {.soft_bytes = 65536, .hard_bytes = 65536, .locked_bytes = 32768});
  CHECK(text.starts_with("; the locked-memory limit is 64 KiB (ulimit -l)"));
  CHECK(text.find("holds 32 KiB locked") != std::string::npos);
  CHECK(text.find("--ulimit memlock=-1") != std::string::npos);
}

TEST_CASE("memlock: no advice about a limit that does not apply", "[unit][device]") {
  const Error enomem{Errc::kNoMemory, EAGAIN, "create a queue pair"};
  CHECK(memlock_advice(enomem, {}).find("ulimit") == std::string::npos);
  CHECK(memlock_advice(enomem, {.soft_bytes = 65536, .can_exceed = true}).find("docker") ==
        std::string::npos);
  CHECK(memlock_advice({Errc::kDenied, EACCES, "x"}, {.soft_bytes = 65536}).empty());
}

TEST_CASE("memlock: a limit of zero has a text of its own", "[unit][device]") {
  const Error eperm{Errc::kDenied, EPERM, "register memory"};
  CHECK(memlock_advice(eperm, {.soft_bytes = 0}).find("limit is 0 bytes (ulimit -l)") !=
        std::string::npos);
  CHECK(memlock_advice(eperm, {.soft_bytes = 65536}).empty());
}

TEST_CASE("memlock: sizes are printed with units", "[unit][device]") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1023) == "1023 bytes");
  CHECK(bytes_text(65536) == "64 KiB");
  CHECK(bytes_text(3ULL << 29) == "1.5 GiB");
  CHECK(bytes_text(kNoLimit) == "unlimited");
}

TEST_CASE("memlock: a fresh reading finds a limit", "[unit][device]") {
  const MemlockFacts facts = read_memlock();
  CHECK(facts.soft_bytes <= facts.hard_bytes);
}

TEST_CASE("inactive port: the text fits its link layer", "[unit][device]") {
  Device device;
  device.ibdev = "mlx5_1";
  device.port = 2;
  device.netdev = "eth7";
  device.facts.state = IBV_PORT_DOWN;
  const Finding down = inactive_port(device);
  CHECK(down.id == "port-not-active");
  CHECK(down.severity == Severity::kWarning);
  CHECK(down.subject == "mlx5_1 port 2");
  CHECK(describe(down) ==
        "mlx5_1 port 2 is DOWN and not used. To fix it: check the cable and its network interface "
        "(ip link set eth7 up)");
  device.link_layer = LinkLayer::kInfiniBand;
  CHECK(inactive_port(device).fix.find("ibstat") != std::string::npos);
  device.facts.state = IBV_PORT_INIT;
  CHECK(inactive_port(device).why.find("subnet manager") != std::string::npos);
}

}  // namespace
}  // namespace beeline
