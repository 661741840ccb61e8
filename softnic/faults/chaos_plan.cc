// SPDX-License-Identifier: Apache-2.0
#include "softnic/faults/chaos_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <sstream>

#include "softnic/spec/names.h"
#include "softnic/spec/units.h"

namespace softnic {
namespace {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kShortest = 2 * kMs;
constexpr std::uint64_t kLongest = 2'000 * kMs;
constexpr std::uint64_t kMinGap = kMs;  // between two disturbances of a port

struct KindName {
  const char* name;
  Disturbance kind;
  bool of_device;
};

constexpr KindName kKinds[] = {
    {"down", Disturbance::kDown, false},
    {"blackhole", Disturbance::kBlackHole, false},
    {"pause", Disturbance::kPause, false},
    {"loss", Disturbance::kLoss, false},
    {"jitter", Disturbance::kJitter, false},
    {"error", Disturbance::kError, false},
    {"event", Disturbance::kEvent, false},
    {"remove", Disturbance::kRemove, true},
    {"refuse-err", Disturbance::kRefuseErr, true},
    {"corrupt", Disturbance::kCorrupt, false},
    {"path-error", Disturbance::kPathError, false},
};

bool is_of_device(Disturbance kind) {
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const KindName& entry) { return entry.kind == kind && entry.of_device; });
}

bool is_only_by_name(Disturbance kind) {
  return kind == Disturbance::kCorrupt || kind == Disturbance::kPathError;
}

// splitmix64. The distributions of the standard library may give other numbers with another
// library.
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  std::uint64_t roll(std::uint64_t sides) { return next() % sides; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + roll(high - low + 1);
  }
  // Logarithmic distribution: each doubling of the value is equally likely. Whole microseconds.
  std::uint64_t spread(std::uint64_t low, std::uint64_t high) {
    const double share = static_cast<double>(roll(1 << 20)) / (1 << 20);
    const double value = static_cast<double>(low) *
                         std::pow(static_cast<double>(high) / static_cast<double>(low), share);
    return static_cast<std::uint64_t>(value) / kUs * kUs;
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

struct CommandPair {
  std::string begin;
  std::string end;
};

constexpr const char* kStatuses[] = {"retry_exc_err",  "rnr_retry_exc_err", "rem_op_err",
                                     "rem_access_err", "loc_qp_op_err",     "general_err"};
// Those that a failing link or device causes, and no mistake of a program.
constexpr const char* kPathStatuses[] = {"retry_exc_err", "rnr_retry_exc_err", "loc_qp_op_err",
                                         "fatal_err",     "resp_timeout_err",  "general_err"};

std::string random_error(RandomSource& random, std::span<const char* const> statuses) {
  // Drawn first, because function arguments are evaluated in any order.
  const char* const status = statuses[random.roll(statuses.size())];
  return fmt::format("error={}@{}", status, random.between(1, 50));
}

CommandPair make_commands(Disturbance kind, std::uint64_t length_ns, RandomSource& random) {
  switch (kind) {
    case Disturbance::kDown: return {"down", "up"};
    case Disturbance::kBlackHole: return {"blackhole", "resume"};
    case Disturbance::kPause: return {"pause=" + duration_text(length_ns), "resume"};
    case Disturbance::kLoss:
      return {fmt::format("loss={}ppm", random.spread(100 * kUs, 100'000 * kUs) / kUs), "loss=0"};
    case Disturbance::kJitter:
      return {fmt::format("jitter={}us", random.spread(10 * kUs, 5 * kMs) / kUs), "jitter=0"};
    case Disturbance::kError: return {random_error(random, kStatuses), "reset"};
    case Disturbance::kPathError: return {random_error(random, kPathStatuses), "reset"};
    case Disturbance::kEvent: return {"event=port_err", "event=port_active"};
    case Disturbance::kRemove: return {"remove", "return"};
    case Disturbance::kRefuseErr: return {"refuse-err=on", "refuse-err=off"};
    case Disturbance::kCorrupt: return {fmt::format("corrupt@{}", random.between(1, 50)), "reset"};
  }
  return {};
}

// Until when each port and device has a disturbance.
class BusyTimes {
 public:
  bool is_free(const ChaosPort& port, bool device_wide, std::uint64_t now) {
    if (busy_[port.name] > now || busy_[port.device] > now) return false;
    return !device_wide || (port.whole_device && ports_busy_[port.device] <= now);
  }
  void book(const ChaosPort& port, bool device_wide, std::uint64_t end) {
    busy_[device_wide ? port.device : port.name] = end;
    std::uint64_t& latest = ports_busy_[port.device];
    latest = std::max(latest, end);
  }

 private:
  std::map<std::string, std::uint64_t> busy_;
  std::map<std::string, std::uint64_t> ports_busy_;  // by device
};

}  // namespace

beeline::Outcome<std::vector<Disturbance>> parse_disturbances(const std::string& text) {
  std::vector<Disturbance> kinds;
  std::vector<std::string> known;
  for (const KindName& entry : kKinds) {
    known.emplace_back(entry.name);
    if (text.empty() && !is_only_by_name(entry.kind)) kinds.push_back(entry.kind);
  }
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto* const entry = std::find_if(std::begin(kKinds), std::end(kKinds),
                                           [&](const KindName& kind) { return kind.name == word; });
    if (entry == std::end(kKinds))
      return beeline::fail(fmt::format("\"{}\" is not a kind of disturbance; the kinds are {}",
                                       word, list_text(known)));
    kinds.push_back(entry->kind);
  }
  return kinds;
}

std::vector<PlannedCommand> plan_chaos(const ChaosRequest& request) {
  std::vector<PlannedCommand> plan;
  if (request.ports.empty() || request.kinds.empty()) return plan;
  RandomSource random(request.seed);
  BusyTimes busy_times;
  const std::uint64_t step = std::max(request.every_ns / kUs, std::uint64_t{2});
  std::uint64_t now = 0;
  for (;;) {
    now += random.between(1, 2 * step - 1) * kUs;
    if (now + kShortest > request.duration_ns) break;
    const ChaosPort& port = request.ports[random.roll(request.ports.size())];
    const Disturbance kind = request.kinds[random.roll(request.kinds.size())];
    const std::uint64_t length =
        std::min(random.spread(kShortest, kLongest), request.duration_ns - now);
    const bool device_wide = is_of_device(kind);
    const CommandPair pair = make_commands(kind, length, random);
    if (!busy_times.is_free(port, device_wide, now)) continue;
    busy_times.book(port, device_wide, now + length + kMinGap);
    const std::string& target = device_wide ? port.device : port.name;
    plan.push_back({now, target, pair.begin});
    plan.push_back({now + length, target, pair.end});
  }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
  return plan;
}

std::string script_text(const std::vector<PlannedCommand>& plan) {
  std::string text;
  for (const PlannedCommand& next : plan)
    text += fmt::format("@{}.{:06}s  {}  {}\n", next.at_ns / 1'000'000'000,
                        next.at_ns % 1'000'000'000 / kUs, next.target, next.command);
  return text;
}

}  // namespace softnic
