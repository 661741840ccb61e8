// SPDX-License-Identifier: Apache-2.0
//
// Two ports of one host have different rates and send to another host at the same time, each from
// its own process. Prints the data rate of each.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "bench/support/endpoint.h"
#include "bench/support/fabric_port.h"
#include "bench/support/ranks.h"
#include "common/base/clock.h"

namespace beeline::bench {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
// Enough to keep the port busy while the sender waits for a processor.
constexpr size_t kBlocksUnderWay = 48;
static_assert(kBlocksUnderWay <= kWritesAtATime);
constexpr int64_t kWarmUpNs = 200 * kNsPerMs;
constexpr int64_t kMeasuredNs = 2 * kNsPerSec;
constexpr double kTolerance = 0.03;

struct Setting {
  std::string device;
  unsigned mb_per_s;
};
const Setting kSettings[] = {{"softnic0", 200}, {"softnic1", 800}};

// Sends continuously until `until`. Returns the number of blocks that arrived; the last one at *at.
size_t stream(Endpoint& end, int64_t until, size_t& under_way, int64_t& at) {
  size_t blocks = 0;
  while (at < until) {
    for (; under_way < kBlocksUnderWay; ++under_way) {
      end.post({under_way * kBlockBytes, under_way * kBlockBytes, kBlockBytes});
    }
    const size_t done = end.poll();
    if (done == 0) continue;
    at = now_ns();
    blocks += done;
    under_way -= done;
  }
  return blocks;
}

// MB/s between the first block after the warm-up and the last.
double measure(Endpoint& end) {
  size_t under_way = 0;
  int64_t at = now_ns();
  stream(end, at + kWarmUpNs, under_way, at);
  const int64_t start = at;
  const size_t blocks = stream(end, start + kMeasuredNs, under_way, at);
  end.wait_for(under_way);
  return static_cast<double>(blocks * kBlockBytes) * 1e3 / static_cast<double>(at - start);
}

void print_line(const Setting& setting, double mb_per_s) {
  const double off = mb_per_s / setting.mb_per_s - 1;
  fmt::print("  h0/{:<12}{:>8} MB/s{:>12.1f} MB/s{:>+10.2f} %   {}\n", setting.device,
             setting.mb_per_s, mb_per_s, 100 * off, std::abs(off) <= kTolerance ? "met" : "missed");
}

// Ranks 0 and 1 send; ranks 2 and 3 receive, which takes no time. Rank 0 prints both results.
void send(test::Peer& peer, const Setting& setting) {
  Endpoint end(setting.device, kBlocksUnderWay * kBlockBytes);
  end.connect(peer, peer.rank() + 2);
  FabricPort port("h0/" + setting.device);
  port.command("rate=" + std::to_string(setting.mb_per_s) + "M");
  peer.meet();
  const double mb_per_s = measure(end);
  peer.meet();
  port.command("reset");
  if (peer.rank() != 0) {
    peer.send(0, mb_per_s);
    return;
  }
  fmt::print("Two ports sending at the same time, for {} s; the goal is to be within {:.0f} %\n\n",
             kMeasuredNs / kNsPerSec, 100 * kTolerance);
  fmt::print("  {:<15}{:>13}{:>17}{:>12}   {}\n", "port", "set to", "delivered", "off by", "goal");
  print_line(kSettings[0], mb_per_s);
  print_line(kSettings[1], peer.receive<double>(1));
}

void receive(test::Peer& peer, const Setting& setting) {
  Endpoint end(setting.device, kBlocksUnderWay * kBlockBytes);
  end.connect(peer, peer.rank() - 2);
  peer.meet();
  peer.meet();
}

}  // namespace
}  // namespace beeline::bench

int main() {
  using namespace beeline::bench;
  std::vector<Rank> ranks;
  for (const Setting& setting : kSettings) {
    ranks.push_back({"h0", [&](beeline::test::Peer& peer) { send(peer, setting); }});
  }
  for (const Setting& setting : kSettings) {
    ranks.push_back({"h1", [&](beeline::test::Peer& peer) { receive(peer, setting); }});
  }
  return run_ranks(ranks);
}
