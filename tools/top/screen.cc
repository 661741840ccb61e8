// SPDX-License-Identifier: Apache-2.0
#include "tools/top/screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "common/base/clock.h"
#include "include/beeline/stats_page.h"
#include "tools/cli/text_style.h"

namespace beeline::top {
namespace {

enum class Mark : std::uint8_t { kPlain, kTitle, kBad };

struct Line {
  std::string text;
  Mark mark = Mark::kPlain;
};

std::string rank_of(const pages::Process& process) {
  return process.rank ? std::to_string(*process.rank) : "-";
}

std::string gigabytes(double bytes) {
  const bool is_little = bytes > 0 && bytes < 1e6;  // three decimals would say that nothing moves
  return fmt::format("{:.{}f}", bytes / 1e9, is_little ? 6 : 3);
}

std::string counted(std::size_t count, const char* one, const char* more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

std::string summary(std::span<const ProcessRate> rates, const Screen& screen) {
  std::size_t connections = 0;
  std::size_t waiting = 0;
  double send = 0;
  for (const ProcessRate& rate : rates) {
    connections += rate.connections.size();
    waiting += rate.waiting;
    for (const Rail& rail : rate.rails) send += rail.send;
  }
  std::string text =
      fmt::format("{}, {}, {} GB/s sent", counted(rates.size(), "process", "processes"),
                  counted(connections, "connection", "connections"), gigabytes(send));
  if (waiting != 0) text += fmt::format(", {} wait: beeline hang", waiting);
  return text + screen.keys;
}

// DOWN is said only of a port of this host: where the port is up, the other end, or what lies
// between, has failed.
std::string state_of(const Rail& rail) {
  if (!rail.stand_ins.empty())
    return fmt::format("out of use: {} stands in", fmt::join(rail.stand_ins, ", "));
  if (rail.out_of_use == 0) return "up";
  const char* const what = rail.down != 0 ? "DOWN" : "out of use";
  return rail.out_of_use == rail.paths
             ? what
             : fmt::format("{} of {} {}", rail.out_of_use, rail.paths, what);
}

void add_rails(std::vector<Line>& lines, std::span<const ProcessRate> rates) {
  lines.push_back(
      {fmt::format("{:>5} {:>8} {:<16} {:>5} {:>9} {:>9} {:>6} {:>6}  {}", "RANK", "PID", "DEVICE",
                   "PATHS", "SENT GB/s", "RECV GB/s", "SHARE", "FAILED", "STATE"),
       Mark::kTitle});
  for (const ProcessRate& rate : rates) {
    double all = 0;
    for (const Rail& rail : rate.rails) all += rail.send + rail.receive;
    std::string who = fmt::format("{:>5} {:>8}", rank_of(rate.process), rate.process.pid);
    const bool is_stopped = rate.process.life == pages::Life::kStopped;
    if (rate.rails.empty() || is_stopped) {
      lines.push_back({who + (is_stopped ? " stopped" : " no connection"),
                       is_stopped ? Mark::kBad : Mark::kPlain});
      who = std::string(who.size(), ' ');
    }
    for (const Rail& rail : rate.rails) {
      const std::string share =
          all == 0 ? "-" : fmt::format("{:.0f}%", 100 * (rail.send + rail.receive) / all);
      lines.push_back({fmt::format("{} {:<16} {:>5} {:>9} {:>9} {:>6} {:>6}  {}", who, rail.device,
                                   rail.paths, gigabytes(rail.send), gigabytes(rail.receive), share,
                                   rail.failures, state_of(rail)),
                       rail.out_of_use == 0 && rail.stand_ins.empty() ? Mark::kPlain : Mark::kBad});
      who = std::string(who.size(), ' ');
    }
  }
}

std::string wait_of(const SlotView& slot, std::int64_t now_ns) {
  if (slot.waits_for == Wait::kNothing) return "-";
  const auto since_ns = static_cast<std::int64_t>(slot.waits_since_ns);
  return fmt::format("{} s for {}", (now_ns - since_ns) / kNsPerSec,
                     beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for)));
}

std::string peer_of(const SlotView& slot) {
  return fmt::format("{}:{} pid {}", slot.peer_host, slot.peer_device, slot.peer_pid);
}

void add_connections(std::vector<Line>& lines, std::span<const ProcessRate> rates,
                     std::int64_t now_ns) {
  std::size_t width = 28;
  for (const ProcessRate& rate : rates) {
    for (const ConnectionRate& one : rate.connections)
      width = std::max(width, peer_of(one.slot).size());
  }
  lines.push_back({""});
  lines.push_back({fmt::format("{:>5} {:>8} {:<4} {:<{}} {:>9} {:>9}  {}", "RANK", "PID", "WAY",
                               "PEER", width, "GB/s", "MESSAGES", "WAITS"),
                   Mark::kTitle});
  for (const ProcessRate& rate : rates) {
    for (const ConnectionRate& connection : rate.connections) {
      const SlotView& slot = connection.slot;
      lines.push_back(
          {fmt::format("{:>5} {:>8} {:<4} {:<{}} {:>9} {:>9.0f}  {}", rank_of(rate.process),
                       rate.process.pid, slot.role == SlotRole::kSend ? "to" : "from",
                       peer_of(slot), width, gigabytes(connection.bytes), connection.messages,
                       wait_of(slot, now_ns)),
           slot.waits_for == Wait::kNothing ? Mark::kPlain : Mark::kBad});
    }
  }
}

tools::Color color_of(Mark mark) {
  switch (mark) {
    case Mark::kPlain: return tools::Color::kNone;
    case Mark::kTitle: return tools::Color::kBold;
    case Mark::kBad: return tools::Color::kRed;
  }
  return tools::Color::kNone;
}

// The names in a page come from another process.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::string text_of(std::span<const ProcessRate> rates, std::int64_t now_ns, const Screen& screen) {
  std::vector<Line> lines = {{summary(rates, screen)}};
  if (!rates.empty()) {
    lines.push_back({""});
    add_rails(lines, rates);
  }
  if (screen.shows_connections) add_connections(lines, rates, now_ns);
  if (screen.rows != 0 && lines.size() > screen.rows) {
    const std::size_t hidden = lines.size() - screen.rows + 1;
    lines.resize(screen.rows - 1);
    lines.push_back({fmt::format("... {} more lines", hidden)});
  }
  std::string text;
  for (const Line& line : lines) {
    std::string shown = printable(line.text);
    if (screen.columns != 0 && shown.size() > screen.columns) shown.resize(screen.columns);
    text += tools::colored(shown, color_of(line.mark), screen.has_color) + "\n";
  }
  return text;
}

}  // namespace beeline::top
