// SPDX-License-Identifier: Apache-2.0
//
// The reader of statistics pages: invalid and changing pages.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <vector>

#include "common/base/fd.h"
#include "plugin/stats/stats_page.h"
#include "tests/support/catch.h"
#include "tests/support/stats_dir.h"
#include "tools/pages/page_reader.h"
#include "tools/pages/trusted_pages.h"

namespace beeline {
namespace {

using test::StatsDir;

// A page with one slot in use. A test can overwrite any of its fields.
class DamagedPage {
 public:
  DamagedPage()
      : page_(StatsPage::open({.directory = dir_.path(), .slot_count = 4})),
        slot_(page_.acquire(SlotRole::kSend, "a")) {}

  template <class T>
  void overwrite(size_t offset, T value) const {
    const UniqueFd fd(::open(path().c_str(), O_WRONLY | O_CLOEXEC));
    BL_MUST(::pwrite(fd.get(), &value, sizeof(value), static_cast<off_t>(offset)) ==
            static_cast<ssize_t>(sizeof(value)));
  }
  void resize(size_t bytes) const {
    BL_MUST(::truncate(path().c_str(), static_cast<off_t>(bytes)) == 0);
  }
  blkcnt_t blocks() const {
    struct stat file {};
    BL_MUST(::stat(path().c_str(), &file) == 0);
    return file.st_blocks;
  }
  const std::string& path() const { return page_.path(); }
  const StatsDir& dir() const { return dir_; }
  Errc refusal() const {
    const Result<PageReader> reader = PageReader::open(path());
    return reader ? Errc::kOk : reader.error().code;
  }

 private:
  StatsDir dir_;
  StatsPage page_;
  StatsSlot slot_;
};

TEST_CASE("reader: a valid page is read", "[unit][stats]") {
  const DamagedPage page;
  CHECK(page.refusal() == Errc::kOk);
}

TEST_CASE("reader: another magic, version or size is refused", "[unit][stats]") {
  const DamagedPage page;
  SECTION("magic") {
    page.overwrite(offsetof(beeline_stats_header, magic), std::uint64_t{1});
    CHECK(page.refusal() == Errc::kInvalid);
  }
  SECTION("version") {
    page.overwrite(offsetof(beeline_stats_header, version), BEELINE_STATS_VERSION + 1);
    CHECK(page.refusal() == Errc::kUnsupported);
  }
  SECTION("size") {
    const size_t size = GENERATE(
        offsetof(beeline_stats_header, header_bytes), offsetof(beeline_stats_header, slot_bytes),
        offsetof(beeline_stats_header, life_events), offsetof(beeline_stats_header, sizes),
        offsetof(beeline_stats_header, counter_count));
    page.overwrite(size, std::uint32_t{16 + 1});
    CHECK(page.refusal() == Errc::kInvalid);
  }
}

TEST_CASE("reader: slots beyond the end of the file are refused", "[unit][stats]") {
  const DamagedPage page;
  page.overwrite(offsetof(beeline_stats_header, slot_count), std::uint32_t{5});
  CHECK(page.refusal() == Errc::kInvalid);
}

TEST_CASE("reader: more slots than the plugin makes are refused", "[unit][stats]") {
  const std::uint32_t more = GENERATE(0U, 1U);
  const DamagedPage page;
  page.overwrite(offsetof(beeline_stats_header, slot_count), BEELINE_STATS_MOST_SLOTS + more);
  page.resize(stats_page_bytes(BEELINE_STATS_MOST_SLOTS + more));
  CHECK(page.refusal() == (more == 0 ? Errc::kOk : Errc::kInvalid));
}

TEST_CASE("reader: holes of a file are no connections, and get no memory", "[unit][stats]") {
  const DamagedPage page;
  page.overwrite(offsetof(beeline_stats_header, slots_used), BEELINE_STATS_MOST_SLOTS);
  page.overwrite(offsetof(beeline_stats_header, slot_count), BEELINE_STATS_MOST_SLOTS);
  page.resize(stats_page_bytes(BEELINE_STATS_MOST_SLOTS));
  const auto blocks = page.blocks();
  const PageReader reader = *PageReader::open(page.path());
  REQUIRE(reader.slots_used() == BEELINE_STATS_MOST_SLOTS);
  int seen = 0;
  for (std::uint32_t i = 0; i < reader.slots_used(); ++i) seen += reader.slot(i) ? 1 : 0;
  CHECK(seen == 1);
  CHECK(page.blocks() == blocks);
}

TEST_CASE("reader: a file that becomes shorter while it is read has no further slots",
          "[unit][stats]") {
  const DamagedPage page;
  const PageReader reader = *PageReader::open(page.path());
  REQUIRE(reader.slot(0));
  page.resize(BEELINE_STATS_HEADER_BYTES);
  CHECK_FALSE(reader.slot(0));
  page.resize(1);
  CHECK(reader.slots_used() == 0);
  CHECK_FALSE(reader.brief_slot(0));
  CHECK(reader.pid() == static_cast<std::uint64_t>(::getpid()));
  page.resize(stats_page_bytes(4));  // this process writes to it in the end
}

TEST_CASE("reader: a number of used slots that is too large is limited", "[unit][stats]") {
  const DamagedPage page;
  const PageReader reader = *PageReader::open(page.path());
  page.overwrite(offsetof(beeline_stats_header, slots_used), ~std::uint32_t{0});
  CHECK(reader.slots_used() == 4);
  CHECK_FALSE(reader.slot(4));
}

TEST_CASE("reader: texts without a terminator are cut at the end of the field", "[unit][stats]") {
  const DamagedPage page;
  for (size_t i = 0; i < 64; ++i) {
    page.overwrite(offsetof(beeline_stats_header, host) + i, 'x');
  }
  CHECK(PageReader::open(page.path())->host() == std::string(64, 'x'));
}

TEST_CASE("reader: a slot that is always changing is given up on", "[unit][stats]") {
  const DamagedPage page;
  const PageReader reader = *PageReader::open(page.path());
  REQUIRE(reader.slot(0));
  page.overwrite(BEELINE_STATS_HEADER_BYTES + offsetof(beeline_stats_slot, generation),
                 std::uint32_t{7});
  CHECK_FALSE(reader.slot(0));
}

TEST_CASE(
    "reader: a connection that ended during its first event shows no event of the slot's last "
    "connection",
    "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 1});
  page.acquire(SlotRole::kSend, "a").record(Event::kPeerBye);
  const StatsSlot slot = page.acquire(SlotRole::kSend, "b");
  const UniqueFd fd(::open(page.path().c_str(), O_WRONLY | O_CLOEXEC));
  const std::uint64_t one = 1;  // claimed, but not yet written
  const off_t claimed = BEELINE_STATS_HEADER_BYTES + offsetof(beeline_stats_slot, life_claimed);
  REQUIRE(::pwrite(fd.get(), &one, sizeof(one), claimed) == sizeof(one));
  CHECK(PageReader::open(page.path())->slot(0).value().life.empty());
}

TEST_CASE("reader: an event that is being written is left out", "[unit][stats]") {
  const StatsDir dir;
  StatsPage page = StatsPage::open({.directory = dir.path()});
  StatsSlot slot = page.acquire(SlotRole::kSend, "a");
  slot.record(Event::kPeerBye, 0, 1);
  slot.record(Event::kPeerBye, 0, 2);
  const UniqueFd fd(::open(page.path().c_str(), O_WRONLY | O_CLOEXEC));
  const std::uint64_t nothing = 0;
  const size_t second = BEELINE_STATS_HEADER_BYTES + offsetof(beeline_stats_slot, life) +
                        sizeof(beeline_stats_event) + offsetof(beeline_stats_event, what);
  REQUIRE(::pwrite(fd.get(), &nothing, sizeof(nothing), static_cast<off_t>(second)) == 8);
  const SlotView view = PageReader::open(page.path())->slot(0).value();
  REQUIRE(view.life.size() == 1);
  CHECK(view.life[0].value == 1);
}

TEST_CASE("reader: a path that is no file, or too short a file, is refused", "[unit][stats]") {
  const StatsDir dir;
  const std::string path = dir.path("short");
  CHECK(PageReader::open(path).error().code == Errc::kSystem);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  CHECK(PageReader::open(path).error().code == Errc::kBusy);  // in the making
  REQUIRE(::ftruncate(fd.get(), BEELINE_STATS_HEADER_BYTES - 1) == 0);
  CHECK(PageReader::open(path).error().code == Errc::kInvalid);
  REQUIRE(::ftruncate(fd.get(), BEELINE_STATS_HEADER_BYTES) == 0);
  CHECK(PageReader::open(path).error().code == Errc::kBusy);  // all zero: no magic yet
  REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
  CHECK(PageReader::open(dir.path("pipe")).error().code == Errc::kInvalid);
}

// The numbers of the processes whose pages are believed, and the reasons for the others.
struct Visited {
  std::vector<std::int64_t> pids;
  pages::LeftOut left_out;
};
Visited visit(const std::string& directory) {
  Visited visited;
  Outcome<pages::LeftOut> left_out = pages::visit_pages(
      directory, [&](const PageOwner& process, pages::Life /*life*/, const PageReader& /*page*/,
                     std::uint32_t /*used*/) { visited.pids.push_back(process.pid); });
  BL_MUST(left_out.has_value());
  visited.left_out = *std::move(left_out);
  return visited;
}

std::string name_of_dead(int number) { return "beeline-1-" + std::to_string(number); }

TEST_CASE("pages: the owner of the file has to be the user of the process", "[unit][stats]") {
  using pages::Reason;
  constexpr uid_t kRoot = 0;
  CHECK(pages::why_not_believed(1000, 1000, 1000) == std::nullopt);
  CHECK(pages::why_not_believed(1000, 1000, kRoot) == std::nullopt);
  CHECK(pages::why_not_believed(1000, 1001, kRoot) == Reason::kForged);
  CHECK(pages::why_not_believed(kRoot, 1001, kRoot) == Reason::kForged);
  CHECK(pages::why_not_believed(1001, 1000, 1000) == Reason::kForged);
}

TEST_CASE("pages: after the end of the process it has to be the user who reads", "[unit][stats]") {
  using pages::Reason;
  CHECK(pages::why_not_believed(std::nullopt, 1000, 1000) == std::nullopt);
  CHECK(pages::why_not_believed(std::nullopt, 0, 0) == std::nullopt);
  CHECK(pages::why_not_believed(std::nullopt, 1000, 0) == Reason::kOfEnded);
  CHECK(pages::why_not_believed(std::nullopt, 1000, 1001) == Reason::kOfEnded);
}

TEST_CASE("pages: the remarks name the owners and say what to do", "[unit][stats]") {
  using pages::Reason;
  const pages::LeftOut left_out = {
      {{Reason::kForbidden, {0, 0}}, {Reason::kOfEnded, {0}}, {Reason::kElsewhere, {0}}}};
  CHECK(left_out.count() == 4);
  CHECK(left_out.of_running() == 3);
  CHECK(left_out.remarks() ==
        "2 statistics pages of root left out: this user may not read them; run as root\n"
        "1 statistics page of root left out: their processes have ended, so it is not known whose "
        "they were; run as root, or name the files: beeline replay FILE...\n"
        "1 statistics page left out: they could not be read where the files of beeline hang --save "
        "were written\n");
}

TEST_CASE("pages: a page in the making is none yet", "[unit][stats]") {
  const DamagedPage page;
  const std::uint64_t magic = GENERATE(0UL, 1UL);
  page.overwrite(offsetof(beeline_stats_header, magic), magic);
  const Visited visited = visit(page.dir().path());
  CHECK(visited.pids.empty());
  CHECK(visited.left_out.count() == magic);
}

TEST_CASE("pages: a second name of the same process is none of a page", "[unit][stats]") {
  const DamagedPage page;
  const std::string name = std::filesystem::path(page.path()).filename().string();
  BL_MUST(::link(page.path().c_str(), page.dir().path("beeline-0" + name.substr(8)).c_str()) == 0);
  CHECK(visit(page.dir().path()).pids.size() == 1);
}

TEST_CASE("pages: of one user a limited number of connections is read", "[unit][stats]") {
  const DamagedPage page;
  page.overwrite(offsetof(beeline_stats_header, slots_used), BEELINE_STATS_MOST_SLOTS);
  page.overwrite(offsetof(beeline_stats_header, slot_count), BEELINE_STATS_MOST_SLOTS);
  page.resize(stats_page_bytes(BEELINE_STATS_MOST_SLOTS));
  constexpr int kMost = pages::kMostSlotsOfUser / BEELINE_STATS_MOST_SLOTS;
  for (int i = 0; i < kMost; ++i) {
    BL_MUST(::link(page.path().c_str(), page.dir().path(name_of_dead(i)).c_str()) == 0);
  }
  const Visited visited = visit(page.dir().path());
  CHECK(visited.pids.size() == kMost);
  CHECK(visited.left_out.owners.at(pages::Reason::kTooMany).size() == 1);
}

}  // namespace
}  // namespace beeline
