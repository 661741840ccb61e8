// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <sstream>

#include "tests/plugin/simulation/clock.h"
#include "tests/plugin/simulation/draw.h"

namespace beeline::simulation {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "down",        "down-silently", "false-event",  "one-way",  "both-ways", "loss",
    "delay",       "doubled",       "removed",      "address",  "status",    "no-error-state",
    "no-posts",    "no-queues",     "no-flushes",   "no-reads", "ctl-cut",   "ctl-mute",
    "stopped",     "no-calls",      "slow-control", "killed",   "discards",  "lost-completions",
    "false-fence", "no-access"};

// Kinds after which a comm may rightly end are not drawn: they have runs of their own.
constexpr std::array<std::uint32_t, kFaultKinds> kUsualWeights = {
    20, 8, 4, 8, 8, 8, 6, 3, 6, 3, 5, 3, 3, 3, 3, 0, 4, 4, 4, 5, 3, 0, 0, 0, 0, 0};

// Kinds that came later draw nothing, so that seeds mean what they have meant.
constexpr std::size_t kKindsOfSeeds = 25;

double ms(std::int64_t ns) { return static_cast<double>(ns) / kMs; }

constexpr std::uint64_t kDrawsOfRun = 0x4000;
constexpr std::uint64_t kDrawsOfFault = 0x5000;

std::uint32_t draw_amount(FaultKind kind, const RunOptions& run, Draws& draws) {
  // Those that show a fault of the path: IBV_WC_RETRY_EXC_ERR and others.
  constexpr std::array<std::uint32_t, 5> kStatuses = {2, 12, 13, 19, 21};
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return static_cast<std::uint32_t>(draws.between(least, most));
  };
  if (kind == FaultKind::kLoss) return between(1, 60);
  if (kind == FaultKind::kDelay) return between(1, 140);
  if (kind == FaultKind::kDoubled) return between(1, 100);
  if (kind == FaultKind::kSlowControl) return between(1, 1500);
  if (kind == FaultKind::kNoCalls) return static_cast<std::uint32_t>(draws.below(run.comms));
  if (kind == FaultKind::kStatus && draws.one_in(5))
    return kStatusesOfPrograms[draws.below(kStatusesOfPrograms.size())];
  if (kind == FaultKind::kStatus) return kStatuses[draws.below(kStatuses.size())];
  return 0;
}

Fault draw_fault(std::uint64_t seed, std::uint64_t number, const RunOptions& run,
                 const std::array<std::uint32_t, kFaultKinds>& weights) {
  Draws draws(seed, kDrawsOfFault + number);
  Fault fault;
  fault.at_ns = draws.between(1, run.faults_for_ns / kUs) * kUs;
  std::uint32_t sum = 0;
  for (const std::uint32_t weight : weights) sum += weight;
  auto left = static_cast<std::uint32_t>(draws.below(sum));
  std::size_t kind = 0;
  while (left >= weights[kind]) left -= weights[kind++];
  fault.kind = static_cast<FaultKind>(kind);
  // From a flap to an outage.
  constexpr std::array<std::int64_t, 6> kLengths = {2, 20, 150, 600, 2000, 7000};
  fault.for_ns = draws.between(1, 1000 * kLengths[draws.below(kLengths.size())]) * kUs;
  fault.host = static_cast<std::uint32_t>(draws.below(run.hosts));
  fault.nic = static_cast<std::uint32_t>(draws.below(draws.percent(85) ? run.rails : run.nics));
  fault.other_host =
      static_cast<std::uint32_t>((fault.host + 1 + draws.below(run.hosts - 1)) % run.hosts);
  fault.other_nic =
      draws.percent(80) ? fault.nic : static_cast<std::uint32_t>(draws.below(run.nics));
  fault.amount = draw_amount(fault.kind, run, draws);
  return fault;
}

}  // namespace

std::string_view name_of(FaultKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

RunOptions draw_run(std::uint64_t seed) {
  Draws draws(seed, kDrawsOfRun);
  RunOptions run;
  run.seed = seed;
  run.hosts = draws.percent(4) ? 3 : 2;
  run.rails = static_cast<std::uint32_t>(1 + draws.below(4));
  run.nics = run.rails + static_cast<std::uint32_t>(draws.below(3));
  run.queue_pairs = draws.percent(15) ? 2 : 1;
  run.comms = draws.one_in(1000) ? 256 : static_cast<std::uint32_t>(1 + draws.below(4));
  constexpr std::array<std::uint32_t, 4> kMost = {512, 16 << 10, 256 << 10, 4 << 20};
  run.most_bytes = kMost[draws.below(kMost.size())];
  run.groups_at_once = static_cast<std::uint32_t>(1 + draws.below(6));
  run.pace_us = static_cast<std::uint32_t>(draws.between(5000, 80000));
  run.poll_ms = static_cast<std::uint32_t>(draws.between(10, 90));
  run.is_gpu = draws.percent(10);
  run.has_standbys = draws.percent(60);
  run.faults_for_ns = draws.between(200, 9000) * kMs;
  std::array<std::uint32_t, kFaultKinds> weights = kUsualWeights;
  for (std::uint32_t& weight : std::span(weights).first(kKindsOfSeeds)) {
    if (draws.percent(40)) weight = 0;
  }
  weights[0] = std::max(weights[0], 1U);
  // A comm ends when its last device is removed.
  if (run.nics == 1 && !draws.one_in(10))
    weights[static_cast<std::size_t>(FaultKind::kRemoved)] = 0;
  const std::uint64_t count = 4 + draws.below(14);
  for (std::uint64_t i = 0; i < count; ++i) {
    run.faults.push_back(draw_fault(seed, i, run, weights));
  }
  std::ranges::sort(run.faults, {}, &Fault::at_ns);
  run.has_immediates = !draws.percent(20);
  // The last path is always made.
  if (draws.percent(10))
    run.missing = static_cast<std::uint32_t>(draws.below(1U << (run.rails * run.queue_pairs - 1)));
  return run;
}

std::string to_text(const Fault& fault) {
  char text[160];
  std::snprintf(text, sizeof text, "at %.3f for %.3f %s h%u/n%u h%u/n%u %u", ms(fault.at_ns),
                ms(fault.for_ns), name_of(fault.kind).data(), fault.host, fault.nic,
                fault.other_host, fault.other_nic, fault.amount);
  return text;
}

std::string to_text(const RunOptions& run) {
  std::ostringstream text;
  text << "run seed=" << run.seed << " hosts=" << run.hosts << " nics=" << run.nics
       << " rails=" << run.rails << " queue_pairs=" << run.queue_pairs << " comms=" << run.comms
       << " most_bytes=" << run.most_bytes << " groups_at_once=" << run.groups_at_once
       << " pace_us=" << run.pace_us << " poll_ms=" << run.poll_ms << " gpu=" << run.is_gpu
       << " standbys=" << run.has_standbys << " give_up_ms=" << run.give_up_ns / kMs
       << " faults_ms=" << run.faults_for_ns / kMs;
  // Most runs do without these words.
  if (!run.has_immediates) text << " immediates=0";
  if (!run.have_standbys_immediates) text << " standby_immediates=0";
  if (run.has_early_done) text << " early=1";
  if (run.is_by_cm) text << " cm=1";
  if (run.one_railed != 0) text << " one_railed=" << run.one_railed;
  if (run.missing != 0) text << " missing=" << run.missing;
  if (run.timeout != RunOptions().timeout) text << " timeout=" << run.timeout;
  text << '\n';
  for (const Fault& fault : run.faults) text << to_text(fault) << '\n';
  return text.str();
}

std::optional<RunOptions> parse_run(std::string_view text, std::string& why) {
  RunOptions run;
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("run ")) {
      long long give_up = 0;
      long long faults = 0;
      unsigned long long seed = 0;
      int gpu = 0;
      int standbys = 0;
      const int read = std::sscanf(
          line.c_str(),
          "run seed=%llu hosts=%u nics=%u rails=%u queue_pairs=%u comms=%u most_bytes=%u "
          "groups_at_once=%u pace_us=%u poll_ms=%u gpu=%d standbys=%d give_up_ms=%lld "
          "faults_ms=%lld",
          &seed, &run.hosts, &run.nics, &run.rails, &run.queue_pairs, &run.comms, &run.most_bytes,
          &run.groups_at_once, &run.pace_us, &run.poll_ms, &gpu, &standbys, &give_up, &faults);
      if (read != 14) return why = "the line of options is not understood: " + line, std::nullopt;
      run.seed = seed;
      run.is_gpu = gpu != 0;
      run.has_standbys = standbys != 0;
      run.give_up_ns = give_up * kMs;
      run.faults_for_ns = faults * kMs;
      const auto has = [&line](const char* word) { return line.find(word) != std::string::npos; };
      run.has_immediates = !has(" immediates=0");
      run.have_standbys_immediates = !has(" standby_immediates=0");
      run.has_early_done = has(" early=1");
      run.is_by_cm = has(" cm=1");
      const auto find = [&line](const char* format, std::uint32_t& value) {
        const std::size_t at =
            line.find(std::string_view(format).substr(0, std::strlen(format) - 2));
        if (at != std::string::npos) std::sscanf(line.c_str() + at, format, &value);
      };
      find(" one_railed=%u", run.one_railed);
      find(" missing=%u", run.missing);
      find(" timeout=%u", run.timeout);
      continue;
    }
    double at = 0;
    double length = 0;
    char name[32] = "";
    Fault fault;
    const int read =
        std::sscanf(line.c_str(), "at %lf for %lf %31s h%u/n%u h%u/n%u %u", &at, &length, name,
                    &fault.host, &fault.nic, &fault.other_host, &fault.other_nic, &fault.amount);
    const auto kind = std::ranges::find(kNames, std::string_view(name));
    const bool fits = fault.host < run.hosts && fault.other_host < run.hosts &&
                      fault.nic < run.nics && fault.other_nic < run.nics;
    if (read != 8 || kind == kNames.end() || !fits) {
      return why = "the line is not understood: " + line, std::nullopt;
    }
    fault.kind = static_cast<FaultKind>(kind - kNames.begin());
    fault.at_ns = std::llround(at * 1000) * kUs;
    fault.for_ns = std::llround(length * 1000) * kUs;
    run.faults.push_back(fault);
  }
  return run;
}

}  // namespace beeline::simulation
