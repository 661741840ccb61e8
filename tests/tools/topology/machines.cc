// SPDX-License-Identifier: Apache-2.0
//
// Machines that are built from equal parts.
#include "tests/tools/topology/machines.h"

#include <fmt/format.h>

namespace beeline::topology::machines {
namespace {

std::string nic_name(int index) { return fmt::format("mlx5_{}", index); }

// A switch below a root port, in its own host bridge. Its buses count from `bus`.
std::string switch_in(int bus) {
  return fmt::format(
      "  host 0000:{0:02x}\n"
      "    root {0:02x}:01.0\n"
      "      up {1:02x}:00.0\n",
      bus, bus + 1);
}

// A port of that switch and what is behind it.
std::string behind(int bus, int port, const std::string& word, const std::string& more) {
  return fmt::format(
      "        down {0:02x}:{1:02x}.0\n"
      "          {2} {3:02x}:00.0 {4}\n",
      bus + 2, port, word, bus + 3 + port, more);
}

// Boards, each of which is a switch with GPUs and NICs.
template <class NameOf>
std::string boards(int count, int boards_a_numa, int gpus, int nics, const NameOf& name_of) {
  std::string text;
  for (int board = 0; board < count; ++board) {
    if (board % boards_a_numa == 0) text += fmt::format("numa {}\n", board / boards_a_numa);
    const int bus = 0x10 + board * 0x10;
    text += switch_in(bus);
    int port = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) text += behind(bus, port++, "gpu", "");
    for (int nic = 0; nic < nics; ++nic)
      text += behind(bus, port++, "nic", name_of(board * nics + nic));
  }
  return text;
}

}  // namespace

std::string one_nic_each() { return boards(8, 4, 1, 1, nic_name); }

std::string one_nic_each_reversed() {
  return boards(8, 4, 1, 1, [](int index) { return nic_name(7 - index); });
}

std::string tied_in_pairs() { return boards(4, 1, 2, 2, nic_name); }

std::string two_gpus_a_nic() {
  std::string text;
  for (int board = 0; board < 4; ++board) {
    if (board % 2 == 0) text += fmt::format("numa {}\n", board / 2);
    const int bus = 0x10 + board * 0x20;
    text += switch_in(bus) + behind(bus, 0, "nic", nic_name(board));
    text += fmt::format(
        "        down {0:02x}:08.0\n"
        "          up {1:02x}:00.0\n"
        "            down {2:02x}:00.0\n"
        "              gpu {3:02x}:00.0\n"
        "            down {2:02x}:01.0\n"
        "              gpu {4:02x}:00.0\n",
        bus + 2, bus + 0x10, bus + 0x11, bus + 0x12, bus + 0x13);
  }
  return text;
}

std::string one_nic_for_all() {
  return "package 0\n"
         " numa 0\n"
         "  host 0001:00\n   gpu 0001:00:00.0\n"
         "  host 0002:00\n   gpu 0002:00:00.0\n"
         "  host 0003:00\n   gpu 0003:00:00.0\n"
         "  host 0004:00\n   gpu 0004:00:00.0\n"
         "  host 0009:00\n   nic 0009:00:02.0 mlx5_0\n"
         "package 1\n"
         " numa 1\n"
         "  host 0005:00\n   gpu 0005:00:00.0\n"
         "  host 0006:00\n   gpu 0006:00:00.0\n"
         "  host 0007:00\n   gpu 0007:00:00.0\n"
         "  host 0008:00\n   gpu 0008:00:00.0\n";
}

std::string four_nics_each() {
  return boards(8, 4, 1, 4, [](int index) { return fmt::format("rdmap{}", index); });
}

std::string sixteen_gpus() { return boards(8, 4, 2, 1, nic_name); }

std::string one_root_port() {
  return "numa 0\n"
         "  host 0000:10\n"
         "    root 10:01.0\n"
         "      up 11:00.0\n"
         "        down 12:00.0\n"
         "          up 20:00.0\n"
         "            down 21:00.0\n              gpu 22:00.0\n"
         "            down 21:01.0\n              gpu 23:00.0\n"
         "        down 12:01.0\n"
         "          up 30:00.0\n"
         "            down 31:00.0\n              gpu 32:00.0\n"
         "            down 31:01.0\n              gpu 33:00.0\n"
         "        down 12:02.0\n          nic 40:00.0 mlx5_0\n"
         "        down 12:03.0\n          nic 41:00.0 mlx5_1\n";
}

std::string far_socket() {
  return "package 0\n"
         "  numa 0\n"
         "    host 0000:10\n      root 10:01.0\n        gpu 11:00.0\n"
         "    host 0000:20\n      root 20:01.0\n        gpu 21:00.0\n"
         "    host 0000:30\n      root 30:01.0\n        gpu 31:00.0\n"
         "    host 0000:40\n      root 40:01.0\n        gpu 41:00.0\n"
         "package 1\n"
         "  numa 1\n"
         "    host 0000:80\n      root 80:01.0\n        nic 81:00.0 mlx5_0\n"
         "    host 0000:90\n      root 90:01.0\n        nic 91:00.0 mlx5_1\n";
}

std::string dual_port() {
  return "numa 0\n"
         "  host 0000:10\n    root 10:01.0\n      gpu 11:00.0\n"
         "  host 0000:20\n    root 20:01.0\n      gpu 21:00.0\n"
         "  host 0000:30\n    root 30:01.0\n      nic 31:00.0 mlx5_0\n      nic 31:00.1 mlx5_1\n"
         "  host 0000:40\n    root 40:01.0\n      nic 41:00.0 mlx5_2\n      nic 41:00.1 mlx5_3\n";
}

std::string virtual_functions() {
  return "numa 0\n"
         "  host 0000:10\n"
         "    gpu 10:01.0\n    gpu 10:02.0\n"
         "    root 10:03.0\n"
         "      nic 11:00.0 mlx5_0 speed=400000\n"
         "      vf 11:00.1 mlx5_1 pf=11:00.0\n"
         "      vf 11:00.2 mlx5_2 pf=11:00.0\n"
         "    root 10:04.0\n"
         "      nic 12:00.0 mlx5_3 speed=400000\n";
}

std::string bonded() {
  return "numa 0\n"
         "  host 0000:10\n"
         "    gpu 10:01.0\n    gpu 10:02.0\n"
         "    root 10:03.0\n"
         "      nic 11:00.0 mlx5_bond_0 bond=bond0\n"
         "      nic 11:00.1 mlx5_1 bond=bond0\n"
         "    root 10:04.0\n"
         "      nic 12:00.0 mlx5_2\n";
}

std::string flat_virtual_machine() {
  return "host 0000:00\n"
         "  gpu 00:05.0\n  gpu 00:06.0\n  gpu 00:07.0\n  gpu 00:08.0\n"
         "  nic 00:09.0 mlx5_0\n  nic 00:0a.0 mlx5_1\n  nic 00:0b.0 mlx5_2\n  nic 00:0c.0 mlx5_3\n";
}

std::string missing_numa() {
  return "numa 0\nnuma 1\n"
         "host 0000:10\n"
         "  root 10:01.0\n"
         "    up 11:00.0\n"
         "      down 12:00.0\n        gpu 13:00.0\n"
         "      down 12:01.0\n        nic 14:00.0 mlx5_0\n"
         "host 0000:20\n  root 20:01.0\n    gpu 21:00.0\n"
         "host 0000:30\n  root 30:01.0\n    nic 31:00.0 mlx5_1\n";
}

std::string no_link_width() {
  return "numa 0\n"
         "  host 0000:10\n"
         "    root 10:01.0 now=32x0 max=32x0\n"
         "      up 11:00.0 now=32x0 max=32x0\n"
         "        down 12:00.0 now=32x0 max=32x0\n          gpu 13:00.0 now=32x0 max=32x0\n"
         "        down 12:01.0 now=32x0 max=32x0\n          nic 14:00.0 mlx5_0 now=32x0 max=32x0\n"
         "  host 0000:20\n"
         "    root 20:01.0 now=32x0 max=32x0\n      gpu 21:00.0 now=32x0 max=32x0\n"
         "    root 20:02.0 now=32x0 max=32x0\n      nic 22:00.0 mlx5_1 now=32x0 max=32x0\n";
}

std::string no_io() { return "numa 0 cpus=0-15\nnuma 1 cpus=16-31\n"; }

}  // namespace beeline::topology::machines
