// SPDX-License-Identifier: Apache-2.0
#include "tools/export/totals.h"

namespace beeline::exporter {
namespace {

// For so many looks a process that is not seen is remembered. Its page may be unreadable for a
// moment, and would otherwise be counted a second time.
constexpr std::uint64_t kLooksRemembered = 60;

// A number that has become smaller began anew.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) noexcept {
  return now < before ? now : now - before;
}

// The entry of this name, or that of kOtherName if there are too many.
template <class Map, class Key>
typename Map::mapped_type& entry(Map& map, const Key& key, const Key& other) {
  const auto found = map.find(key);
  if (found != map.end()) return found->second;
  return map[map.size() < kMostNames ? key : other];
}

}  // namespace

std::string direction_of(SlotRole role) {
  switch (role) {
    case SlotRole::kSend:
    case SlotRole::kReceive: return beeline_stats_role_text(static_cast<std::uint32_t>(role));
    case SlotRole::kListen: break;
  }
  return kOtherName;
}

void Totals::add(const std::vector<pages::Process>& processes) {
  ++looks_;
  for (const pages::Process& process : processes) {
    const ProcessKey key(process.pid, process.start_time);
    // A page that stays after a failure would otherwise count again whenever this starts.
    if (process.life == pages::Life::kEnded && !seen_.contains(key)) continue;
    add_process(process, seen_[key]);
  }
  std::erase_if(seen_, [&](const auto& it) { return it.second.look + kLooksRemembered < looks_; });
}

void Totals::add_process(const pages::Process& process, SeenProcess& seen) {
  seen.look = looks_;
  slots_refused_ += growth(seen.slots_refused, process.slots_refused);
  seen.slots_refused = process.slots_refused;
  std::map<std::uint64_t, SeenConnection> now;
  for (const auto* slots : {&process.connections, &process.closed}) {
    for (const SlotView& slot : *slots) {
      const auto before = seen.connections.find(slot.id);
      now[slot.id] = add_connection(
          slot, before == seen.connections.end() ? SeenConnection{} : before->second);
    }
  }
  seen.connections = std::move(now);
}

Totals::SeenConnection Totals::add_connection(const SlotView& slot, const SeenConnection& before) {
  SeenConnection now = {.counted = {.bytes = slot[Counter::kBytes],
                                    .messages = slot[Counter::kMessages],
                                    .truncations = slot[Counter::kTruncations],
                                    .errors = slot[Counter::kErrors]}};
  const std::string direction = direction_of(slot.role);
  ConnectionTotal& total = entry(by_device_, std::pair(slot.device, direction),
                                 std::pair(std::string(kOtherName), direction));
  total.bytes += growth(before.counted.bytes, now.counted.bytes);
  total.messages += growth(before.counted.messages, now.counted.messages);
  total.truncations += growth(before.counted.truncations, now.counted.truncations);
  total.errors += growth(before.counted.errors, now.counted.errors);
  add_paths(slot, before, now);
  return now;
}

// A path that is made anew may use another port than before. The bytes since the last look count
// for the port that it uses now, its failures for its own.
void Totals::add_paths(const SlotView& slot, const SeenConnection& before, SeenConnection& now) {
  for (std::size_t i = 0; i < slot.paths.size(); ++i) {
    const PathView& path = slot.paths[i];
    const SeenPath old = i < before.paths.size() ? before.paths[i] : SeenPath{};
    now.paths.push_back({.bytes = path.bytes, .failures = path.failures});
    PortTotal& total = entry(by_port_, path.device, std::string(kOtherName));
    total.bytes[direction_of(slot.role)] += growth(old.bytes, path.bytes);
    entry(by_port_, path.own_device, std::string(kOtherName)).failures +=
        growth(old.failures, path.failures);
  }
}

}  // namespace beeline::exporter
