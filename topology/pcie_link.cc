// SPDX-License-Identifier: Apache-2.0
#include "topology/pcie_link.h"

#include <array>

namespace beeline::topology {
namespace {

struct Generation {
  std::uint32_t mega_transfers;
  double payload_share;  // of the bits on the wire
};
// By generation, from 1. Since PCIe 3.0 each generation doubles the rate.
constexpr std::array kGenerations = {
    Generation{2'500, 8.0 / 10},      // 8b/10b
    Generation{5'000, 8.0 / 10},      //
    Generation{8'000, 128.0 / 130},   // 128b/130b
    Generation{16'000, 128.0 / 130},  //
    Generation{32'000, 128.0 / 130},  //
    Generation{64'000, 242.0 / 256},  // FLIT: 236 bytes of packets and 6 of the link layer in 256,
    Generation{128'000, 242.0 / 256}  // the rest is CRC and error correction
};

}  // namespace

PcieLink link_that_carries(double wanted) noexcept {
  for (const std::uint32_t lanes : {16U, 8U, 4U, 2U, 1U}) {
    for (const Generation& generation : kGenerations) {
      const PcieLink link{.mega_transfers = generation.mega_transfers, .lanes = lanes};
      const double carried = gigabytes_per_second(link);
      if (wanted > carried * 0.99 && wanted < carried * 1.01) return link;
    }
  }
  return {};
}

int generation(const PcieLink& link) noexcept {
  for (std::size_t i = 0; i < kGenerations.size(); ++i) {
    if (kGenerations[i].mega_transfers == link.mega_transfers) return static_cast<int>(i) + 1;
  }
  return 0;
}

double gigabytes_per_second(const PcieLink& link) noexcept {
  if (!link.is_known()) return 0;
  // A rate that is not in the list has the encoding of the next lower one.
  double share = kGenerations.front().payload_share;
  for (const Generation& known : kGenerations) {
    if (known.mega_transfers <= link.mega_transfers) share = known.payload_share;
  }
  return share * link.mega_transfers / 1'000 * link.lanes / 8;
}

std::string to_string(const PcieLink& link) {
  if (link.mega_transfers == 0 && link.lanes == 0) return "unknown";
  const int number = generation(link);
  return "Gen" + (number == 0 ? "?" : std::to_string(number)) + " x" +
         (link.lanes == 0 ? "?" : std::to_string(link.lanes));
}

}  // namespace beeline::topology
