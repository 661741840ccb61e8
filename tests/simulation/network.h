// SPDX-License-Identifier: Apache-2.0
//
// The links between ports. Each port reaches each other port through one switch. A link loses,
// delays and doubles packets, in each direction for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/simulation/clock.h"
#include "tests/simulation/draw.h"

namespace beeline::simulation {

// The link from one port to another: how it treats packets.
struct LinkFault {
  unsigned loss_percent = 0;
  unsigned doubled_percent = 0;
  std::int64_t most_delay_ns = 0;  // besides the usual one; packets may overtake each other

  bool is_none() const noexcept {
    return loss_percent == 0 && doubled_percent == 0 && most_delay_ns == 0;
  }
};

class Network {
 public:
  using Port = std::uint32_t;
  // A packet is lost if it has not arrived after so long: recovery relies on that where a device
  // does not fence (times.h, the longest way of a packet).
  static constexpr std::int64_t kLongestWay = 150 * kMs;

  Network(Agenda& agenda, std::uint64_t seed) : agenda_(agenda), seed_(seed) {}

  Port add_port(std::uint32_t mbps);
  bool is_up(Port port) const noexcept { return ports_[port].is_up; }
  void set_up(Port port, bool is_up) noexcept { ports_[port].is_up = is_up; }
  std::uint32_t mbps(Port port) const noexcept { return ports_[port].mbps; }
  void set_fault(Port from, Port to, const LinkFault& fault);
  void clear_faults();

  // Sends a packet. `arrive` is called once, twice or never.
  void send(Port from, Port to, std::uint64_t bytes, const std::function<void()>& arrive);
  std::uint64_t packets() const noexcept { return packets_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  struct PortState {
    bool is_up = true;
    std::uint32_t mbps = 0;
    std::int64_t busy_until_ns = 0;
    Draws draws;
  };

  Agenda& agenda_;
  std::uint64_t seed_;
  std::vector<PortState> ports_;
  std::map<std::pair<Port, Port>, LinkFault> faults_;
  std::uint64_t packets_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace beeline::simulation
