// SPDX-License-Identifier: Apache-2.0
// Updates a host's sysfs tree while the fabric runs: states, GIDs and P_Keys of ports. A file that
// cannot be written is skipped, so that the port changes all the same.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "softnic/spec/sysfs_parts.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string device_dir(const std::string& root, const std::string& device) {
  return fmt::format("{}/class/infiniband/{}", root, device);
}

std::string port_dir(const std::string& root, const std::string& device,
                     std::uint32_t port_number) {
  return fmt::format("{}/ports/{}", device_dir(root, device), port_number);
}

// The network interface of a port: the one below the PCI function whose dev_port is this port.
std::string netdev_dir(const std::string& device, std::uint32_t port_number) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(device + "/device/net", ignored))
    if (first_line(entry.path().string() + "/dev_port") == std::to_string(port_number - 1))
      return entry.path().string();
  return {};
}

}  // namespace

void show_port_state(const std::string& root, const std::string& device, std::uint32_t port_number,
                     bool up) {
  const std::string dir = port_dir(root, device, port_number);
  const bool ethernet = first_line(dir + "/link_layer") == "Ethernet";
  const LinkLayer link_layer = ethernet ? LinkLayer::kEthernet : LinkLayer::kInfiniBand;
  replace_file(dir + "/state", fmt::format("{}\n", state_text(up)));
  replace_file(dir + "/phys_state", fmt::format("{}\n", phys_state_text(up, link_layer)));
  const std::string netdev = netdev_dir(device_dir(root, device), port_number);
  if (netdev.empty()) return;
  replace_file(netdev + "/operstate", up ? "up\n" : "down\n");
  replace_file(netdev + "/carrier", up ? "1\n" : "0\n");
}

void show_gid(const std::string& root, const std::string& device, std::uint32_t port_number,
              std::uint32_t index, const GidSpec* gid) {
  const std::string dir = port_dir(root, device, port_number);
  const GidTexts texts = gid_texts(
      gid, fs::path(netdev_dir(device_dir(root, device), port_number)).filename().string());
  replace_file(fmt::format("{}/gids/{}", dir, index), texts.address);
  replace_file(fmt::format("{}/gid_attrs/types/{}", dir, index), texts.type);
  replace_file(fmt::format("{}/gid_attrs/ndevs/{}", dir, index), texts.netdev);
}

void show_pkey(const std::string& root, const std::string& device, std::uint32_t port_number,
               std::uint32_t pkey) {
  replace_file(port_dir(root, device, port_number) + "/pkeys/0", fmt::format("0x{:04x}\n", pkey));
}

void show_lid(const std::string& root, const std::string& device, std::uint32_t port_number,
              std::uint32_t lid) {
  replace_file(port_dir(root, device, port_number) + "/lid", fmt::format("0x{:x}\n", lid));
}

}  // namespace softnic
