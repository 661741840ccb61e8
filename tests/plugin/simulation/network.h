// SPDX-License-Identifier: Apache-2.0
//
// The links between ports. Each port reaches each other port through one switch. A link loses,
// delays and doubles packets, in each direction for itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/plugin/simulation/clock.h"
#include "tests/plugin/simulation/draw.h"

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
  template <class Arrive>
  void send(Port from, Port to, std::uint64_t bytes, Arrive&& arrive) {
    const Arrivals arrivals = draw_arrivals(from, to, bytes);
    for (std::uint32_t i = 0; i < arrivals.count; ++i) {
      agenda_.at(arrivals.when_ns[i], [this, to, arrive] {
        if (ports_[to].is_up) {
          arrive();
        } else {
          ++lost_;
        }
      });
    }
  }
  std::uint64_t packets() const noexcept { return packets_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  struct Arrivals {
    std::uint32_t count = 0;
    std::array<std::int64_t, 2> when_ns{};
  };
  struct PortState {
    bool is_up = true;
    std::uint32_t mbps = 0;
    std::int64_t busy_until_ns = 0;
    Draws draws;
  };

  Arrivals draw_arrivals(Port from, Port to, std::uint64_t bytes);

  Agenda& agenda_;
  std::uint64_t seed_;
  std::vector<PortState> ports_;
  std::map<std::pair<Port, Port>, LinkFault> faults_;
  std::uint64_t packets_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace beeline::simulation
