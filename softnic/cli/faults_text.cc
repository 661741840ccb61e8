// SPDX-License-Identifier: Apache-2.0
#include "softnic/cli/faults_text.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/clock.h"
#include "softnic/fabric/device_presence.h"
#include "softnic/spec/units.h"
#include "softnic/spec/wc_status.h"

namespace softnic::cli {
namespace {

using Words = std::vector<std::string>;

void add_pause(const PortRecord& port, Words& words) {
  if ((port.faults.load() & kFaultBlackHole) != 0) words.emplace_back("blackhole");
  const std::uint64_t until = port.paused_until_ns.load();
  const auto now = static_cast<std::uint64_t>(beeline::now_ns());
  if (until <= now) return;
  words.push_back(until == kForEver ? "paused" : "paused=" + duration_text(until - now));
}

void add_armed(const PortRecord& port, Words& words) {
  const std::uint32_t faults = port.faults.load();
  if ((faults & kFaultError) != 0)
    words.push_back(fmt::format("error={}@{}", wc_status_name(port.error_status.load()),
                                port.error_countdown.load()));
  if ((faults & kFaultCorrupt) != 0)
    words.push_back(fmt::format("corrupt@{}", port.corrupt_countdown.load()));
  if ((faults & kFaultDiscard) != 0)
    words.push_back(
        fmt::format("discard={}@{}", port.discard_bytes.load(), port.discard_countdown.load()));
}

}  // namespace

std::string faults_text(const DeviceRecord& device, const PortRecord& port) {
  Words words;
  if (is_removed(device)) words.emplace_back("removed");
  add_pause(port, words);
  if (const std::uint32_t ppm = port.loss_ppm.load()) words.push_back("loss=" + share_text(ppm));
  if (const std::uint32_t ppm = port.sent_loss_ppm.load())
    words.push_back("loss-sent=" + share_text(ppm));
  if (const std::uint64_t bytes = port.lost_over_bytes.load())
    words.push_back(fmt::format("loss-over={}", bytes));
  if (const std::uint64_t ns = port.jitter_ns.load())
    words.push_back("jitter=" + duration_text(ns));
  if (const std::uint32_t pkey = port.pkey.load(); pkey != kDefaultPkey)
    words.push_back(fmt::format("pkey=0x{:04x}", pkey));
  add_armed(port, words);
  if (device.refuses_to_break.load() != 0) words.emplace_back("refuse-err");
  if (device.refuses_gpu_memory.load() != 0) words.emplace_back("refuse-gpu");
  if (device.hides_events.load() != 0) words.emplace_back("hide-events");
  if (const std::uint64_t ns = device.command_ns.load())
    words.push_back("command=" + duration_text(ns));
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, " "));
}

std::string hazards_text(const HazardRecord& hazards) {
  Words words;
  if (hazards.scatter.load() != 0) words.emplace_back("scatter");
  if (hazards.hide.load() != 0) words.emplace_back("hide");
  if (const std::uint64_t ns = hazards.bunch_ns.load())
    words.push_back("bunch=" + duration_text(ns));
  if (const std::uint64_t ns = hazards.command_ns.load())
    words.push_back("command=" + duration_text(ns));
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace softnic::cli
