// SPDX-License-Identifier: Apache-2.0
// The link rates that real ports report. 800 Gb/s is given as 8X NDR and not as 4X XDR, because XDR
// does not fit the eight bits of ibv_port_attr::active_speed. 1 Gb/s Ethernet is given as 1X SDR,
// as mlx5 does.
#include "softnic/spec/link_rate.h"

namespace softnic {
namespace {

constexpr LinkRate kLinkRates[] = {
    {1, "2.5 Gb/sec (1X SDR)", 1, 1},     {10, "10 Gb/sec (1X QDR)", 1, 4},
    {25, "25 Gb/sec (1X EDR)", 1, 32},    {40, "40 Gb/sec (4X QDR)", 2, 4},
    {50, "50 Gb/sec (2X EDR)", 16, 32},   {100, "100 Gb/sec (4X EDR)", 2, 32},
    {200, "200 Gb/sec (4X HDR)", 2, 64},  {400, "400 Gb/sec (4X NDR)", 2, 128},
    {800, "800 Gb/sec (8X NDR)", 4, 128},
};

}  // namespace

std::span<const LinkRate> link_rates() { return kLinkRates; }

const LinkRate* find_link_rate(std::uint32_t gbps) {
  for (const LinkRate& rate : kLinkRates)
    if (rate.gbps == gbps) return &rate;
  return nullptr;
}

}  // namespace softnic
