// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/coverage.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/repair/path_machine.h"

namespace beeline::simulation {
namespace {

constexpr std::array<std::string_view, 8> kStates = {"Up",     "Fencing", "Fenced",  "Clear",
                                                     "Making", "Offered", "Probing", "Answered"};
constexpr std::array<std::string_view, PathEvent::kKinds> kEvents = {
    "failed",      "fence-refused", "drained",       "timer",  "port-well",    "port-not-well",
    "queues-made", "probed",        "queues-failed", "FENCED", "CANNOT_FENCE", "OFFER",
    "ANSWER",      "NOT_NOW",       "WELL",          "READY"};
constexpr std::array<std::string_view, 2> kRoles = {"receiver", "sender"};

// By role, state and event: how often the event came, was ignored, and led to which state.
struct Cell {
  std::uint64_t came = 0;
  std::uint64_t ignored = 0;
  std::array<std::uint64_t, kStates.size()> to{};
};
std::array<std::array<std::array<Cell, PathEvent::kKinds>, kStates.size()>, 2> cells;
// The kind in force, and the kind that begins.
std::array<std::array<std::uint64_t, kFaultKinds>, kFaultKinds> pairs;
std::array<std::uint64_t, kFaultKinds> faults{};

unsigned long long wide(std::uint64_t value) { return value; }

void note(const PathStatus& before, const PathEvent& event, const PathTransition& made) {
  Cell& cell = cells[before.is_sender ? 1 : 0][static_cast<std::size_t>(before.state)]
                    [static_cast<std::size_t>(event.kind)];
  ++cell.came;
  if (made.next == before && made.actions.empty()) {
    ++cell.ignored;
  } else {
    ++cell.to[static_cast<std::size_t>(made.next.state)];
  }
}

bool lasts(FaultKind kind) {
  return kind != FaultKind::kFalseEvent && kind != FaultKind::kNewAddress &&
         kind != FaultKind::kStatus && kind != FaultKind::kKilled;
}

bool are_between_same(const Fault& one, const Fault& other) {
  return std::minmax(one.host, one.other_host) == std::minmax(other.host, other.other_host);
}

void print_list(const char* title, const std::string& names) {
  std::printf("%s: %s\n", title, names.empty() ? "none" : names.c_str());
}

void append(std::string& names, std::string_view name) {
  if (!names.empty()) names += ", ";
  names += name;
}

void print_states(std::size_t role) {
  std::array<std::uint64_t, kStates.size()> entered{};
  std::string unseen;
  std::printf("\n%s: state, event: times, of those ignored; next states\n", kRoles[role].data());
  for (std::size_t state = 0; state < kStates.size(); ++state) {
    for (std::size_t event = 0; event < kEvents.size(); ++event) {
      const Cell& cell = cells[role][state][event];
      if (cell.came == 0) {
        append(unseen, std::string(kStates[state]) + "/" + std::string(kEvents[event]));
        continue;
      }
      std::printf("  %-8s %-13s %9llu %9llu ", kStates[state].data(), kEvents[event].data(),
                  wide(cell.came), wide(cell.ignored));
      for (std::size_t next = 0; next < kStates.size(); ++next) {
        if (cell.to[next] == 0) continue;
        std::printf(" %s %llu", kStates[next].data(), wide(cell.to[next]));
        if (next != state) entered[next] += cell.to[next];
      }
      std::printf("\n");
    }
  }
  std::string never;
  std::printf("%s: states entered:", kRoles[role].data());
  for (std::size_t state = 0; state < kStates.size(); ++state) {
    std::printf(" %s %llu", kStates[state].data(), wide(entered[state]));
    if (entered[state] == 0) append(never, kStates[state]);
  }
  std::printf("\n");
  print_list((std::string(kRoles[role]) + ": states never entered").c_str(), never);
  print_list((std::string(kRoles[role]) + ": events that never came in a state").c_str(), unseen);
}

void print_pairs() {
  std::printf("\nfaults: times; what began while they were in force\n");
  std::string never_drawn;
  std::string never;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    const std::string name(name_of(static_cast<FaultKind>(kind)));
    if (faults[kind] == 0) {
      append(never_drawn, name);
      continue;
    }
    std::printf("  %-14s %8llu ", name.c_str(), wide(faults[kind]));
    for (std::size_t other = 0; other < kFaultKinds; ++other) {
      if (faults[other] == 0 || !lasts(static_cast<FaultKind>(kind))) continue;
      const std::string_view begins = name_of(static_cast<FaultKind>(other));
      if (pairs[kind][other] == 0) {
        append(never, name + "+" + std::string(begins));
      } else {
        std::printf(" %s %llu", begins.data(), wide(pairs[kind][other]));
      }
    }
    std::printf("\n");
  }
  print_list("kinds of faults that never came", never_drawn);
  print_list("kinds of faults that never met (in force + begins)", never);
}

}  // namespace

void count_faults(const RunOptions& run) {
  for (const Fault& begins : run.faults) {
    ++faults[static_cast<std::size_t>(begins.kind)];
    for (const Fault& older : run.faults) {
      const bool is_in_force = &older != &begins && lasts(older.kind) &&
                               older.at_ns <= begins.at_ns &&
                               (older.for_ns == 0 || begins.at_ns < older.at_ns + older.for_ns);
      if (!is_in_force || !are_between_same(older, begins)) continue;
      ++pairs[static_cast<std::size_t>(older.kind)][static_cast<std::size_t>(begins.kind)];
    }
  }
}

void print_coverage() {
  for (std::size_t role = 0; role < kRoles.size(); ++role) print_states(role);
  print_pairs();
}

// --- --wrap: the plugin calls the second of these, and that the plugin's own ---

PathTransition real_on_event(const PathStatus& status, const PathEvent& event) noexcept
    asm("__real__ZN7beeline8on_eventERKNS_10PathStatusERKNS_9PathEventE");
PathTransition noting_on_event(const PathStatus& status, const PathEvent& event) noexcept
    asm("__wrap__ZN7beeline8on_eventERKNS_10PathStatusERKNS_9PathEventE");

PathTransition noting_on_event(const PathStatus& status, const PathEvent& event) noexcept {
  const PathTransition made = real_on_event(status, event);
  note(status, event, made);
  return made;
}

}  // namespace beeline::simulation
