// SPDX-License-Identifier: Apache-2.0
//
// A host as the checks need it, read once: its RDMA devices and their ports, its GPUs, the
// environment, the topology.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin/checks/plugin_view.h"
#include "plugin/checks/tree.h"
#include "plugin/checks/verbs_view.h"
#include "plugin/config/environ.h"
#include "topology/graph.h"

namespace beeline::checks {

// An entry of a port's GID table that is in use.
struct GidRow {
  int index = 0;
  std::string address;  // "fe80:0000:...": as the kernel writes it
  std::string type;     // "IB/RoCE v1", "RoCE v2"
  std::string netdev;

  bool is_v2() const { return type == "RoCE v2"; }
  bool is_link_local() const;   // fe80::/10, or 169.254.0.0/16 mapped to IPv6
  bool is_ipv4_mapped() const;  // ::ffff:a.b.c.d
};
// "10.0.1.2" if it is an IPv4 address.
std::string address_text(const GidRow& gid);

struct Port {
  int number = 1;
  std::string folder;      // "/sys/class/infiniband/mlx5_0/ports/1"
  std::string state;       // "4: ACTIVE"
  std::string phys_state;  // "5: LinkUp"
  std::uint32_t speed_mbps = 0;
  bool is_ethernet = false;
  std::vector<GidRow> gids;
  std::string netdev;  // empty: none that this process can see
  int mtu = 0;         // of the interface; 0: unknown
  // Whether a job would use it: the device filter admits it, and this process has been given the
  // device. If it has been given none, all count.
  bool is_wanted = true;

  bool is_active() const { return state.starts_with("4:") || state.starts_with("5:"); }
};

struct RdmaDevice {
  std::string name;    // "mlx5_0"
  std::string folder;  // "/sys/class/infiniband/mlx5_0"
  std::string driver;  // "mlx5_core"; empty: none, as of a soft device
  std::string pci;     // "0000:3b:00.0"; empty: none
  std::string model;   // "MT4129"
  std::string firmware;
  bool is_iwarp = false;
  std::string board;   // "MT_0000000838"
  std::string uverbs;  // "uverbs0"; empty: none
  bool can_open = false;
  std::vector<Port> ports;

  // "MT4129 MT_0000000838".
  std::string kind() const { return board.empty() ? model : model + " " + board; }
  // Not a function of a card, but software on an interface (rxe, siw).
  bool is_soft() const { return pci.empty(); }
};

struct Gpu {
  std::string pci;
  std::string name;
  bool is_nvidia = false;
};

struct Host {
  const Tree& tree;
  std::vector<RdmaDevice> devices = {};
  std::vector<Gpu> gpus = {};
  Environ environ;
  std::optional<topology::Graph> graph = {};  // empty: not understood
  std::optional<VerbsView> verbs = {};        // empty: not known
  std::optional<PluginView> plugins = {};     // empty: not known
  // The file of NCCL from which a variable comes; empty: the environment.
  std::map<std::string, std::string> file_of = {};

  bool has_active_port() const;
  // Whether this process can open at least one device.
  bool can_open_any() const;
};

// The files of NCCL count as variables, as in NCCL.
Host read_host(const Tree& tree, const Environ& environ, std::optional<VerbsView> verbs);

// The files from which NCCL reads variables, in its order: the first value counts.
std::vector<std::string> nccl_files(const Environ& environ);

// "mlx5_0 port 1".
std::string label(const RdmaDevice& device, const Port& port);

}  // namespace beeline::checks
