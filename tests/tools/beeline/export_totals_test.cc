// SPDX-License-Identifier: Apache-2.0
//
// Totals over all connections, which never go down.
#include "tests/support/catch.h"
#include "tools/export/totals.h"

namespace beeline::exporter {
namespace {

using pages::Life;
using pages::Process;

SlotView connection(std::uint64_t id, std::uint64_t bytes, std::vector<PathView> paths = {}) {
  SlotView slot = {};
  slot.id = id;
  slot.role = SlotRole::kSend;
  slot.state = SlotState::kReady;
  slot.device = "beeline_a";
  slot.counters[static_cast<std::size_t>(Counter::kBytes)] = bytes;
  slot.counters[static_cast<std::size_t>(Counter::kMessages)] = bytes / 10;
  slot.counters[static_cast<std::size_t>(Counter::kErrors)] = bytes / 100;
  slot.counters[static_cast<std::size_t>(Counter::kTruncations)] = bytes / 1000;
  slot.paths = std::move(paths);
  return slot;
}

PathView path(const char* device, std::uint64_t bytes, std::uint32_t failures = 0,
              const char* own = nullptr) {
  return {.health = PathHealth::kUp,
          .bytes = bytes,
          .failures = failures,
          .device = device,
          .own_device = own == nullptr ? device : own};
}

Process process(std::int64_t pid, std::vector<SlotView> connections, Life life = Life::kRuns) {
  return {.pid = pid,
          .start_time = 7,
          .host = "n1",
          .life = life,
          .connections = std::move(connections)};
}

ConnectionTotal sent(const Totals& totals, const char* device = "beeline_a") {
  const auto found = totals.by_device().find({device, "send"});
  return found == totals.by_device().end() ? ConnectionTotal{} : found->second;
}

TEST_CASE("export: a total is the sum over all processes", "[tools]") {
  Totals totals;
  totals.add(
      {process(1, {connection(1, 1000), connection(2, 2000)}), process(2, {connection(1, 4000)})});
  CHECK(sent(totals).bytes == 7000);
  CHECK(sent(totals).messages == 700);
  CHECK(sent(totals).errors == 70);
  CHECK(sent(totals).truncations == 7);
}

TEST_CASE("export: a total keeps what processes have counted that ended", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 1000)}), process(2, {connection(1, 5000)})});
  totals.add({process(1, {connection(1, 1500)})});
  CHECK(sent(totals).bytes == 6500);
  totals.add({});
  CHECK(sent(totals).bytes == 6500);
  SECTION("and adds those of a new process with the same pid") {
    Process again = process(2, {connection(1, 100)});
    again.start_time = 8;
    totals.add({again});
    CHECK(sent(totals).bytes == 6600);
  }
}

TEST_CASE("export: a process whose page stays counts once more after its end", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 1000)})});
  totals.add({process(1, {connection(1, 1200)}, Life::kEnded)});
  totals.add({process(1, {connection(1, 1200)}, Life::kEnded)});
  CHECK(sent(totals).bytes == 1200);
}

TEST_CASE("export: what had ended before the first look does not count", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 1000)}, Life::kEnded)});
  CHECK(sent(totals).bytes == 0);
  CHECK(totals.by_device().empty());
}

TEST_CASE("export: a page that cannot be read for a moment does not count twice", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 1000)})});
  totals.add({});
  totals.add({process(1, {connection(1, 1100)})});
  CHECK(sent(totals).bytes == 1100);
}

TEST_CASE("export: a connection that closes, and another in its place", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 1000)})});
  Process closed = process(1, {});
  closed.closed = {connection(1, 1300)};
  totals.add({closed});
  CHECK(sent(totals).bytes == 1300);
  totals.add({process(1, {connection(2, 50)})});
  CHECK(sent(totals).bytes == 1350);
}

TEST_CASE("export: the bytes and failures of paths count for their port", "[tools]") {
  Totals totals;
  totals.add({process(1, {connection(1, 0, {path("a:1", 100), path("b:1", 30)})})});
  // The first path has failed, and is made anew by another port.
  totals.add({process(1, {connection(1, 0, {path("a:1", 120, 1), path("b:1", 40)})})});
  totals.add({process(1, {connection(1, 0, {path("c:1", 150, 2, "a:1"), path("b:1", 40)})})});
  const auto& ports = totals.by_port();
  REQUIRE(ports.size() == 3);
  CHECK(ports.at("a:1").bytes.at("send") == 120);
  CHECK(ports.at("a:1").failures == 2);
  CHECK(ports.at("b:1").bytes.at("send") == 40);
  CHECK(ports.at("c:1").bytes.at("send") == 30);
  CHECK(ports.at("c:1").failures == 0);
}

TEST_CASE("export: a total of refused slots keeps what processes have counted", "[tools]") {
  Totals totals;
  Process full = process(1, {});
  full.slots_refused = 3;
  totals.add({full});
  full.slots_refused = 5;
  totals.add({full});
  totals.add({});
  CHECK(totals.slots_refused() == 5);
}

TEST_CASE("export: a process cannot make more and more series", "[tools]") {
  Totals totals;
  for (std::uint64_t id = 1; id <= 2 * kMostNames; ++id) {
    const std::string name = "mlx5_" + std::to_string(id);
    SlotView slot = connection(id, 10, {path(name.c_str(), 1)});
    slot.device = name;
    totals.add({process(1, {slot})});
  }
  CHECK(totals.by_port().size() == kMostNames + 1);
  CHECK(totals.by_port().at(kOtherName).bytes.at("send") == kMostNames);
  CHECK(totals.by_device().size() == kMostNames + 1);
  CHECK(sent(totals, kOtherName).bytes == 10 * kMostNames);
}

}  // namespace
}  // namespace beeline::exporter
