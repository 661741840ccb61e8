// SPDX-License-Identifier: Apache-2.0
//
// The statistics page of a running process, as a reader sees it.
#include "plugin/stats/stats_page.h"
#include "common/base/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "plugin/stats/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/stats_dir.h"
#include "tools/pages/page_reader.h"

namespace beeline {
namespace {

using test::StatsDir;

PageReader reader_of(const StatsPage& page) {
  Result<PageReader> reader = PageReader::open(page.path());
  if (!reader) FAIL(describe(reader.error()));
  return *std::move(reader);
}

SlotView view_of(const StatsPage& page, std::uint32_t index) {
  const std::optional<SlotView> view = reader_of(page).slot(index);
  REQUIRE(view);
  return *view;
}

TEST_CASE("stats: the header says whose page it is", "[unit][stats]") {
  const StatsDir dir;
  const StatsPage page = StatsPage::open({.directory = dir.path(), .build = "1.2.3 (abc)"});
  const PageReader reader = reader_of(page);
  CHECK(reader.pid() == static_cast<std::uint64_t>(::getpid()));
  CHECK(reader.start_time() == process_start_time(::getpid()));
  CHECK(reader.host() == host_name());
  CHECK(reader.build() == "1.2.3 (abc)");
  CHECK(reader.slots_used() == 0);
  CHECK_FALSE(reader.rank());
  CHECK_FALSE(reader.ranks());
  CHECK(reader.job().empty());
  CHECK(reader.identity() == 0);
}

TEST_CASE("stats: the header has the rank, the job, and a number for the peers", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page =
      StatsPage::open({.directory = dir.path(), .rank = 3, .ranks = 8, .job = "48213.0"});
  page.set_identity(4711);
  const PageReader reader = reader_of(page);
  CHECK(reader.rank() == 3);
  CHECK(reader.ranks() == 8);
  CHECK(reader.job() == "48213.0");
  CHECK(reader.identity() == 4711);
}

TEST_CASE(
    "stats: only this user can read the file, which has the documented name and is removed with "
    "the page",
    "[unit][stats]") {
  const StatsDir dir;
  std::string path;
  {
    const StatsPage page = StatsPage::open({.directory = dir.path()});
    path = page.path();
    CHECK(path == dir.path("beeline-" + std::to_string(::getpid()) + "-" +
                           std::to_string(*process_start_time(::getpid()))));
    struct stat file {};
    REQUIRE(::stat(path.c_str(), &file) == 0);
    CHECK((file.st_mode & 07777) == 0600);
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("stats: unused slots take no memory", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1024});
  const StatsSlot slot = page.acquire(SlotRole::kSend, "mlx5_0");
  struct stat file {};
  REQUIRE(::stat(page.path().c_str(), &file) == 0);
  CHECK(static_cast<size_t>(file.st_size) == stats_page_bytes(1024));
  CHECK(file.st_blocks * 512 <= 4 * ::sysconf(_SC_PAGESIZE));
}

TEST_CASE("stats: a connection is shown from its start to its end", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kReceive, "mlx5_0");
  CHECK(slot.is_shown());
  SlotView view = view_of(page, 0);
  CHECK(view.state == SlotState::kConnecting);
  CHECK(view.role == SlotRole::kReceive);
  CHECK(view.device == "mlx5_0");
  CHECK(view.peer_host.empty());
  CHECK(view.opened_ns != 0);
  CHECK(view.closed_ns == 0);

  slot.set_peer("node7", "mlx5_3");
  slot.set_state(SlotState::kReady);
  view = view_of(page, 0);
  CHECK(view.state == SlotState::kReady);
  CHECK(view.peer_host == "node7");
  CHECK(view.peer_device == "mlx5_3");

  slot.close();
  CHECK_FALSE(slot.is_shown());
  view = view_of(page, 0);
  CHECK(view.state == SlotState::kClosed);
  CHECK(view.closed_ns >= view.opened_ns);
  CHECK(view.peer_host == "node7");
}

TEST_CASE("stats: a connection that has failed is shown as failed when it is closed",
          "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1});
  StatsSlot slot = page.acquire(SlotRole::kSend, "mlx5_0");
  slot.set_peer_identity(77);
  slot.set_wait(Wait::kConnect, 1000, 0);
  CHECK(view_of(page, 0).peer_identity == 77);
  slot.record(Event::kFailed, 3);
  slot.set_state(SlotState::kFailed);
  slot.close();
  SlotView view = view_of(page, 0);
  CHECK(view.state == SlotState::kFailed);
  CHECK(view.closed_ns >= view.opened_ns);
  CHECK(view.waits_for == Wait::kNothing);
  CHECK(view.life.back().arg == 3);
  slot = page.acquire(SlotRole::kListen, "mlx5_0");  // the place is free all the same
  view = view_of(page, 0);
  CHECK(view.role == SlotRole::kListen);
  CHECK(view.state == SlotState::kConnecting);
  CHECK(view.closed_ns == 0);
  CHECK(view.peer_identity == 0);
}

TEST_CASE("stats: at the end of a process the file is removed, unless a connection has failed",
          "[unit][stats]") {
  const bool fails = GENERATE(false, true);
  const bool closes = GENERATE(false, true);
  CAPTURE(fails, closes);
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot good = page.acquire(SlotRole::kSend, "mlx5_0");
  StatsSlot other = page.acquire(SlotRole::kReceive, "mlx5_0");
  other.set_state(fails ? SlotState::kFailed : SlotState::kReady);
  if (closes) other.close();
  page.remove_unless_failed();
  CHECK(dir.entries() == (fails ? 1 : 0));
  good.add(Counter::kMessages);  // other connections can still count
}

TEST_CASE("stats: a text that does not fit is cut", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kSend, std::string(100, 'd'));
  slot.set_peer(std::string(100, 'h'), std::string(31, 'p'));
  slot.begin_path(0, "\033[2J\x9b", 1);
  const SlotView view = view_of(page, 0);
  CHECK(view.paths.at(0).device == "?[2J?:1");  // it would control the terminal of a reader
  CHECK(view.device == std::string(31, 'd'));
  CHECK(view.peer_host == std::string(63, 'h'));
  CHECK(view.peer_device == std::string(31, 'p'));
}

TEST_CASE("stats: a slot shows its paths, its other end and what it waits for, until it is reused",
          "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1});
  {
    StatsSlot slot = page.acquire(SlotRole::kSend, "mlx5_0");
    slot.set_peer("node7", "mlx5_3:1", {.pid = 4711, .ours = 5, .theirs = 9});
    slot.begin_path(0, "mlx5_0", 1);
    slot.begin_path(2, std::string(40, 'x'), 2);
    slot.set_path_bytes(0, 1ULL << 40);
    slot.fail_path(2);
    slot.set_wait(Wait::kCredit, 77, 3);
    const SlotView view = view_of(page, 0);
    CHECK(view.peer_pid == 4711);
    CHECK(view.number == 5);
    CHECK(view.peer_number == 9);
    CHECK(view.waits_for == Wait::kCredit);
    CHECK(view.waits_since_ns == 77);
    CHECK(view.requests == 3);
    REQUIRE(view.paths.size() == 2);
    CHECK(view.paths[0].device == "mlx5_0:1");
    CHECK_FALSE(view.paths[0].is_moved());
    CHECK(view.paths[0].health == PathHealth::kUp);
    CHECK(view.paths[0].bytes == 1ULL << 40);
    CHECK(view.paths[1].device == std::string(31, 'x'));
    CHECK(view.paths[1].health == PathHealth::kDown);
    CHECK(view.paths[1].failures == 1);
    slot.begin_path(2, "mlx5_1", 1);
    CHECK(view_of(page, 0).paths[1].health == PathHealth::kUp);
    CHECK(view_of(page, 0).paths[1].device == "mlx5_1:1");
    CHECK(view_of(page, 0).paths[1].failures == 1);
  }
  const StatsSlot next = page.acquire(SlotRole::kReceive, "mlx5_0");
  const SlotView view = view_of(page, 0);
  CHECK(view.paths.empty());
  CHECK(view.peer_pid == 0);
  CHECK(view.number == 0);
  CHECK(view.waits_for == Wait::kNothing);
  CHECK(view.waits_since_ns == 0);
}

TEST_CASE("stats: each counter counts for itself and for its connection", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot first = page.acquire(SlotRole::kSend, "a");
  StatsSlot second = page.acquire(SlotRole::kSend, "b");
  first.add(Counter::kMessages);
  first.add(Counter::kMessages);
  first.add(Counter::kBytes, 1ULL << 40);
  second.add(Counter::kErrors);
  const SlotView a = view_of(page, 0);
  const SlotView b = view_of(page, 1);
  CHECK(a[Counter::kMessages] == 2);
  CHECK(a[Counter::kBytes] == 1ULL << 40);
  CHECK(a[Counter::kErrors] == 0);
  CHECK(b[Counter::kErrors] == 1);
  CHECK(b[Counter::kMessages] == 0);
}

TEST_CASE("stats: events keep their order and arguments", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  const auto before = static_cast<std::uint64_t>(now_ns());
  slot.record(Event::kReady);
  slot.record(Event::kCompletionError, 12, 129, 3);
  slot.record(Event::kTruncation, ~0U, ~0ULL, 0xffff);
  const SlotView view = view_of(page, 0);
  REQUIRE(view.life.size() == 3);
  CHECK(view.life[0].event == Event::kReady);
  CHECK(view.life[0].time_ns >= before);
  CHECK(view.life[1].event == Event::kCompletionError);
  CHECK(view.life[1].arg == 12);
  CHECK(view.life[1].value == 129);
  CHECK(view.life[1].rail == 3);
  CHECK(view.life[1].time_ns >= view.life[0].time_ns);
  CHECK(view.life[2].event == Event::kTruncation);
  CHECK(view.life[2].arg == ~0U);
  CHECK(view.life[2].value == ~0ULL);
  CHECK(view.life[2].rail == 0xffff);
}

TEST_CASE("stats: the sizes of the last messages are kept", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot sender = page.acquire(SlotRole::kSend, "a");
  constexpr std::uint32_t kMessages = BEELINE_STATS_SIZES + 20;
  for (std::uint32_t i = 0; i < kMessages; ++i) sender.add_message(i, 1000 + i);
  const SlotView view = view_of(page, 0);
  CHECK(view[Counter::kMessages] == kMessages);
  CHECK(view[Counter::kBytes] == kMessages * 1000 + kMessages * (kMessages - 1) / 2);
  for (std::uint32_t i = 20; i < kMessages; ++i) {
    CHECK(view.sizes[i % BEELINE_STATS_SIZES] == 1000 + i);
  }
}

TEST_CASE("stats: a receiver shows which messages it awaits, and since when nothing has come",
          "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot receiver = page.acquire(SlotRole::kReceive, "a");
  receiver.add_grant(0);
  receiver.add_grant(1);
  receiver.add_message(1, 7);
  receiver.set_quiet_since(4711);
  const SlotView view = view_of(page, 0);
  CHECK(view[Counter::kGrants] == 2);
  CHECK(view[Counter::kMessages] == 1);
  CHECK(view.sizes[0] == BEELINE_STATS_UNDER_WAY);
  CHECK(view.sizes[1] == 7);
  CHECK(view.quiet_since_ns == 4711);
}

TEST_CASE("stats: the newest looks are kept, and are gone in the next connection",
          "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1, .rank = 7});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  constexpr std::uint32_t kLooks = BEELINE_STATS_LOOKS + 5;
  for (std::uint32_t i = 1; i <= kLooks; ++i) {
    slot.record_look(Event::kMoved, i, i * std::uint64_t{1000}, 100 + i);
  }
  slot.record_look(Event::kWaits, static_cast<std::uint32_t>(Wait::kCredit), 3, 500);
  slot.set_peer("n2", "b", {}, {.ahead_ns = -5, .error_ns = 9});
  const SlotView view = view_of(page, 0);
  REQUIRE(view.looks.size() == BEELINE_STATS_LOOKS);
  CHECK(view.looks.front().arg == 7);
  CHECK(view.looks.front().value == 7000);
  CHECK(view.looks.front().time_ns == 107);
  CHECK(view.looks.back().event == Event::kWaits);
  CHECK(view.looks.back().arg == BEELINE_WAIT_CREDIT);
  CHECK(view.life.empty());
  CHECK(view.peer_clock.ahead_ns == -5);
  CHECK(view.peer_clock.error_ns == 9);
  CHECK(PageReader::open(page.path())->rank() == 7);
  slot.close();
  const StatsSlot next = page.acquire(SlotRole::kSend, "b");
  CHECK(view_of(page, 0).looks.empty());
  CHECK(view_of(page, 0).peer_clock.error_ns == 0);
}

TEST_CASE("stats: a path that fails and comes back is recorded", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  slot.begin_path(1, "mlx5_1", 1);
  slot.fail_path(1);
  slot.restore_path(1, "mlx5_3", 2);
  const SlotView view = view_of(page, 0);
  REQUIRE(view.life.size() == 2);
  CHECK(view.life[0].event == Event::kPathDown);
  CHECK(view.life[1].event == Event::kPathUp);
  CHECK(view.life[1].rail == 1);
  REQUIRE(view.paths.size() == 1);
  CHECK(view.paths[0].device == "mlx5_3:2");
  CHECK(view.paths[0].own_device == "mlx5_1:1");
  CHECK(view.paths[0].is_moved());
  CHECK(view.paths[0].failures == 1);
  CHECK(PageReader::open(page.path())->rank() == std::nullopt);
}

TEST_CASE("stats: fresh slots are used first, then the one closed longest ago", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 3});
  StatsSlot a = page.acquire(SlotRole::kSend, "a");
  StatsSlot b = page.acquire(SlotRole::kSend, "b");
  b.record(Event::kPeerBye);
  b.add_message(3, 5);
  b.set_quiet_since(4711);
  b.set_peer("host", "device");
  b.close();
  a.close();
  StatsSlot c = page.acquire(SlotRole::kSend, "c");
  CHECK(view_of(page, 0).device == "a");
  CHECK(view_of(page, 1).device == "b");
  CHECK(view_of(page, 2).device == "c");
  const StatsSlot d = page.acquire(SlotRole::kReceive, "d");
  const SlotView reused = view_of(page, 1);
  CHECK(reused.device == "d");
  CHECK(reused.id == 4);
  CHECK(reused.closed_ns == 0);
  CHECK(reused.peer_host.empty());
  CHECK(reused[Counter::kBytes] == 0);
  CHECK(reused.sizes[3] == 0);
  CHECK(reused.quiet_since_ns == 0);
  CHECK(reused.life.empty());
  const StatsSlot e = page.acquire(SlotRole::kSend, "e");
  CHECK(view_of(page, 0).device == "e");
}

TEST_CASE("stats: connections beyond the last slot are counted and not shown", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1});
  StatsSlot shown = page.acquire(SlotRole::kSend, "a");
  StatsSlot hidden = page.acquire(SlotRole::kSend, "b");
  CHECK_FALSE(hidden.is_shown());
  hidden.add(Counter::kMessages);
  hidden.record(Event::kPeerBye);
  hidden.set_state(SlotState::kReady);
  hidden.close();
  const PageReader reader = reader_of(page);
  CHECK(reader.slots_used() == 1);
  CHECK(reader.slots_refused() == 1);
  CHECK(view_of(page, 0).device == "a");
  CHECK(view_of(page, 0)[Counter::kMessages] == 0);
  shown.close();
  CHECK(page.acquire(SlotRole::kSend, "c").is_shown());
}

TEST_CASE("stats: a slot that moves is closed once", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 2});
  StatsSlot first = page.acquire(SlotRole::kSend, "a");
  StatsSlot second = std::move(first);
  first.close();  // NOLINT(bugprone-use-after-move): empty is what a move leaves
  CHECK(view_of(page, 0).state == SlotState::kConnecting);
  second = page.acquire(SlotRole::kSend, "b");
  CHECK(view_of(page, 0).state == SlotState::kClosed);
  CHECK(view_of(page, 1).state == SlotState::kConnecting);
}

TEST_CASE("stats: an empty slot may be written to", "[unit][stats]") {
  StatsSlot slot;
  slot.add(Counter::kMessages);
  slot.record(Event::kPeerBye);
  slot.add_grant(0);
  slot.add_message(0, 8);
  slot.set_peer("a", "b");
  slot.set_state(SlotState::kReady);
  slot.close();
  CHECK_FALSE(slot.is_shown());
}

TEST_CASE("stats: switched off, there is no file and all else works", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .shown = false});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  slot.add(Counter::kMessages);
  CHECK(page.path().empty());
  CHECK(dir.entries() == 0);
  CHECK_FALSE(page.finding());
}

TEST_CASE("stats: a missing directory is a note, and all else works", "[unit][stats]") {
  StatsPage page = StatsPage::open({.directory = "/nonexistent"});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  slot.add(Counter::kMessages);
  slot.record(Event::kPeerBye);
  CHECK(page.path().empty());
  REQUIRE(page.finding());
  CHECK(page.finding()->id == "stats-page-failed");
  CHECK(page.finding()->severity == Severity::kNote);
  CHECK(page.finding()->fact.starts_with("no statistics page: /nonexistent/beeline-"));
  CHECK(page.finding()->fact.find("No such file or directory") != std::string::npos);
}

TEST_CASE("stats: a second page of one process leaves the first alone", "[unit][stats]") {
  const StatsDir dir;
  const StatsPage first = StatsPage::open({.directory = dir.path()});
  {
    const StatsPage second = StatsPage::open({.directory = dir.path()});
    CHECK(second.path().empty());
  }
  CHECK(reader_of(first).pid() == static_cast<std::uint64_t>(::getpid()));
}

TEST_CASE("stats: threads get slots of their own", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 64});
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&page] {
      for (int i = 0; i < 200; ++i) {
        StatsSlot slot = page.acquire(SlotRole::kSend, "a");
        slot.add_message(0, 8);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const PageReader reader = reader_of(page);
  CHECK(reader.slots_used() == 64);
  CHECK(reader.slots_refused() == 0);
  std::set<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const SlotView view = reader.slot(i).value();
    CHECK(view[Counter::kMessages] == 1);
    ids.insert(view.id);
  }
  CHECK(ids.size() == 64);
}

TEST_CASE("stats: two threads may record the life of one connection", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  const auto record_some = [&slot](Event event) {
    for (std::uint32_t i = 0; i < BEELINE_STATS_LIFE_EVENTS / 2; ++i) slot.record(event, i);
  };
  std::thread other(record_some, Event::kPeerDied);
  record_some(Event::kTimedOut);
  other.join();
  const SlotView view = view_of(page, 0);
  CHECK(view.life.size() == BEELINE_STATS_LIFE_EVENTS);
  CHECK(std::count_if(view.life.begin(), view.life.end(), [](const EventView& it) {
          return it.event == Event::kTimedOut;
        }) == BEELINE_STATS_LIFE_EVENTS / 2);
}

// Opens and closes connections in one slot, until told to stop. Every event has its number twice,
// each connection has its name in each of its texts, and a size for all of its messages, so that a
// mixture of old and new is visible. Every second connection lives long enough to be copied without
// a change.
void write_until(const std::atomic<bool>& stop, StatsPage& page) {
  for (std::uint32_t round = 0; !stop.load(std::memory_order_relaxed); ++round) {
    const std::string name(8, static_cast<char>('a' + round % 26));
    StatsSlot slot = page.acquire(SlotRole::kSend, name);
    slot.set_peer(name, name);
    slot.set_state(SlotState::kReady);
    const std::uint32_t events = round % 2 == 0 ? 100 : 20000;
    for (std::uint32_t i = 0; i < events; ++i) {
      slot.add_message(i, round + 1);
      slot.record(Event::kTimedOut, i, i);
    }
  }
}

bool is_mixture(const SlotView& view) {
  const auto differs = [](const EventView& it) { return it.arg != it.value; };
  std::set<std::uint32_t> sizes(view.sizes.begin(), view.sizes.end());
  sizes.erase(0);
  const bool texts = view.state == SlotState::kReady &&
                     (view.peer_host != view.device || view.peer_device != view.device);
  return texts || sizes.size() > 1 || std::any_of(view.life.begin(), view.life.end(), differs);
}

TEST_CASE("stats: a reader never sees half an event or half a connection", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1});
  const PageReader reader = reader_of(page);
  std::atomic<bool> stop{false};
  std::thread writer([&] { write_until(stop, page); });
  const auto deadline = test::Clock::now() + test::kPatience;
  std::set<std::uint64_t> seen;
  int mixtures = 0;
  while (seen.size() < 50 && test::Clock::now() < deadline) {
    const std::optional<SlotView> view = reader.slot(0);
    if (!view) continue;
    seen.insert(view->id);
    mixtures += is_mixture(*view) ? 1 : 0;
  }
  stop.store(true);
  writer.join();
  CHECK(mixtures == 0);
  CHECK(seen.size() == 50);
}

}  // namespace
}  // namespace beeline
