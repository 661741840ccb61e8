// SPDX-License-Identifier: Apache-2.0
//
// Statistics pages of dead processes stay readable and are removed later. Other files stay.
#include "plugin/stats/sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/fd.h"
#include "plugin/stats/stats_page.h"
#include "tests/support/catch.h"
#include "tests/support/stats_dir.h"
#include "tools/pages/page_reader.h"

namespace beeline {
namespace {

using test::StatsDir;

// A process that writes to its own page until it is killed.
class Writer {
 public:
  explicit Writer(const StatsDir& dir) {
    int line[2];
    BL_MUST(::pipe2(line, O_CLOEXEC) == 0);
    const UniqueFd from_child(line[0]);
    UniqueFd to_parent(line[1]);
    pid_ = ::fork();
    BL_MUST(pid_ >= 0);
    if (pid_ == 0) write_for_ever(dir, std::move(to_parent));
    to_parent.reset();
    char path[256] = {};
    BL_MUST(::read(from_child.get(), path, sizeof(path) - 1) > 0);
    path_ = path;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] static void write_for_ever(const StatsDir& dir, UniqueFd to_parent) {
    StatsPage page = StatsPage::open({.directory = dir.path()});
    StatsSlot slot = page.acquire(SlotRole::kSend, "mlx5_0");
    slot.record(Event::kReady);
    slot.set_peer("node7", "mlx5_3");
    slot.set_state(SlotState::kReady);
    for (std::uint64_t i = 1;; ++i) {
      slot.add_message(static_cast<std::uint32_t>(i - 1), static_cast<std::uint32_t>(i));
      // The parent waits until all places have been filled more than once.
      if (i != 1000) continue;
      if (::write(to_parent.get(), page.path().data(), page.path().size()) < 0) ::_exit(1);
    }
  }

  pid_t pid_ = 0;
  std::string path_;
};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

mode_t mode_of(const std::string& path) {
  struct stat file {};
  BL_MUST(::stat(path.c_str(), &file) == 0);
  return file.st_mode & 07777;
}

// A process id that no process can have: the largest is 2^22.
constexpr PageOwner kNobody{(1 << 22) + 7, 4711};

// Writes the page of a process that died long ago, and had so many connections.
std::string leave_page(const StatsDir& dir, const std::string& name = page_file_name(kNobody),
                       std::uint32_t connections = 1) {
  std::string path = dir.path(name);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  beeline_stats_header header{};
  header.magic = BEELINE_STATS_MAGIC;
  header.slots_used = connections;
  BL_MUST(::write(fd.get(), &header, sizeof header) == sizeof header);
  return path;
}

void make_old(const std::string& path) {
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  BL_MUST(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
}

#ifndef __SANITIZE_THREAD__  // it does not support fork
TEST_CASE("stats: the page of a process that was killed can be read", "[unit][stats]") {
  const StatsDir dir;
  Writer writer(dir);
  writer.kill();
  const Result<PageReader> reader = PageReader::open(writer.path());
  REQUIRE(reader);
  const SlotView view = reader->slot(0).value();
  CHECK(view.state == SlotState::kReady);
  CHECK(view.closed_ns == 0);
  CHECK(view.device == "mlx5_0");
  CHECK(view.peer_host == "node7");
  REQUIRE(view.life.size() == 1);
  CHECK(view.life[0].event == Event::kReady);
  const std::uint64_t messages = view[Counter::kMessages];
  CHECK(messages >= 1000);
  // It may have been killed after it wrote the next size, and before it counted the message.
  for (std::uint64_t n = messages - BEELINE_STATS_SIZES + 1; n < messages; ++n) {
    CHECK(view.sizes[n % BEELINE_STATS_SIZES] == n + 1);
  }
}

TEST_CASE("stats: a process is read while it works", "[unit][stats]") {
  const StatsDir dir;
  const Writer writer(dir);
  const Result<PageReader> reader = PageReader::open(writer.path());
  REQUIRE(reader);
  const std::uint64_t before = reader->slot(0).value()[Counter::kMessages];
  const auto deadline = test::Clock::now() + test::kPatience;
  while (reader->slot(0).value()[Counter::kMessages] == before) {
    REQUIRE(test::Clock::now() < deadline);
  }
  CHECK(reader->slot(0).value()[Counter::kMessages] > before);
}

TEST_CASE("sweep: the page of a living process stays, that of a dead one is removed after a while",
          "[unit][stats]") {
  const StatsDir dir;
  Writer writer(dir);
  make_old(writer.path());
  sweep_dead_pages(dir.path(), 0);
  CHECK(mode_of(writer.path()) == 0600);
  writer.kill();
  sweep_dead_pages(dir.path(), 0);  // finds it dead
  REQUIRE(exists(writer.path()));
  CHECK(mode_of(writer.path()) == 0400);
  CHECK(PageReader::open(writer.path()));
  sweep_dead_pages(dir.path(), 3600 * kNsPerSec);
  CHECK(exists(writer.path()));  // the hour begins when a sweep has first found it dead
  sweep_dead_pages(dir.path(), 0);
  CHECK_FALSE(exists(writer.path()));
}

TEST_CASE("stats: a forked child that drops the page leaves it to its parent", "[unit][stats]") {
  const StatsDir dir;
  // On the heap, so that the child can destroy its copy of the page and nothing else.
  const std::unique_ptr<StatsPage> page(new StatsPage(StatsPage::open({.directory = dir.path()})));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::destroy_at(page.get());
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(exists(page->path()));
}
#endif

TEST_CASE("sweep: another process with the number of the dead one does not save its page",
          "[unit][stats]") {
  const StatsDir dir;
  const std::string path =
      leave_page(dir, page_file_name({::getpid(), *process_start_time(::getpid()) + 1}));
  sweep_dead_pages(dir.path(), 0);
  sweep_dead_pages(dir.path(), 0);
  CHECK_FALSE(exists(path));
}

TEST_CASE("sweep: the page of a process that has had no connection is not kept", "[unit][stats]") {
  const StatsDir dir;
  const std::string path = leave_page(dir, page_file_name(kNobody), 0);
  CHECK(sweep_dead_pages(dir.path()) == 0);
  CHECK_FALSE(exists(path));
}

TEST_CASE("sweep: a living process's page stays even where locks do not work", "[unit][stats]") {
  const StatsDir dir;
  const std::string path =
      leave_page(dir, page_file_name({::getpid(), *process_start_time(::getpid())}));
  sweep_dead_pages(dir.path(), 0);
  CHECK(mode_of(path) == 0600);
}

TEST_CASE("sweep: a page that somebody has locked stays: its owner may be in another container",
          "[unit][stats]") {
  const StatsDir dir;
  const std::string path = leave_page(dir);
  UniqueFd owner(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(owner.get(), LOCK_EX) == 0);
  sweep_dead_pages(dir.path(), 0);
  CHECK(mode_of(path) == 0600);
  owner.reset();
  sweep_dead_pages(dir.path(), 0);
  CHECK(mode_of(path) == 0400);
}

TEST_CASE("sweep: a page locks itself", "[unit][stats]") {
  const StatsDir dir;
  const StatsPage page = StatsPage::open({.directory = dir.path()});
  const UniqueFd other(::open(page.path().c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(::flock(other.get(), LOCK_EX | LOCK_NB) != 0);
}

TEST_CASE("sweep: opening a page sweeps", "[unit][stats]") {
  const StatsDir dir;
  const std::string path = leave_page(dir);
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  make_old(path);
  const StatsPage page = StatsPage::open({.directory = dir.path()});
  CHECK_FALSE(exists(path));
}

TEST_CASE("sweep: of many dead pages the newest stay, and one sweep looks at a part",
          "[unit][stats]") {
  const StatsDir dir;
  for (std::uint64_t start = 0; start < 2 * kMaxPagesPerSweep; ++start) {
    const std::string path = leave_page(dir, page_file_name({kNobody.pid, start}));
    REQUIRE(::chmod(path.c_str(), 0400) == 0);
    if (start != 7) make_old(path);
  }
  sweep_dead_pages(dir.path(), INT64_MAX);
  CHECK(dir.entries() == kMaxPagesPerSweep + kMaxDeadPages);
  for (int i = 0; i < 3; ++i) {
    CHECK(sweep_dead_pages(dir.path(), INT64_MAX) == kMaxDeadPages);
  }
  CHECK(dir.entries() == kMaxDeadPages);
  CHECK(exists(dir.path(page_file_name({kNobody.pid, 7}))));
}

TEST_CASE("sweep: dead pages take a limited amount of memory", "[unit][stats]") {
  const StatsDir dir;
  constexpr std::uint64_t kPages = 5;
  constexpr auto kBytes = static_cast<off_t>(kMaxDeadBytes * 15 / 16 / (kPages - 1));
  for (std::uint64_t start = 0; start < kPages; ++start) {
    const std::string path = leave_page(dir, page_file_name({kNobody.pid, start}));
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::posix_fallocate(fd.get(), 0, kBytes) == 0);
    REQUIRE(::chmod(path.c_str(), 0400) == 0);
    if (start == 2) make_old(path);
  }
  CHECK(sweep_dead_pages(dir.path(), INT64_MAX) == kPages - 1);
  CHECK_FALSE(exists(dir.path(page_file_name({kNobody.pid, 2}))));
}

TEST_CASE("sweep: other files stay", "[unit][stats]") {
  const StatsDir dir;
  const auto swept = [&dir](const std::string& path) {
    if (::access(path.c_str(), F_OK) == 0) make_old(path);
    for (int i = 0; i < 3; ++i) sweep_dead_pages(dir.path(), 0);
    struct stat file {};
    return ::lstat(path.c_str(), &file) != 0;
  };
  SECTION("another name") {
    for (const char* name : {"beeline-4194311", "beeline-4194311-", "beeline-4194311-4711x",
                             "beeline--5-4711", "beeline-99999999999-1", "xbeeline-4194311-4711"}) {
      INFO(name);
      CHECK_FALSE(swept(leave_page(dir, name)));
    }
  }
  SECTION("an empty file") {
    const std::string page = leave_page(dir);
    REQUIRE(::truncate(page.c_str(), 0) == 0);
    CHECK_FALSE(swept(page));
  }
  SECTION("a file that is no page") {
    const std::string page = leave_page(dir);
    const UniqueFd fd(::open(page.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::pwrite(fd.get(), "somewhat", 8, 0) == 8);
    CHECK_FALSE(swept(page));
  }
  SECTION("a link") {
    const std::string link = dir.path("beeline-4194312-4711");
    REQUIRE(::symlink("elsewhere", link.c_str()) == 0);
    CHECK_FALSE(swept(link));
  }
  SECTION("a pipe") {
    const std::string pipe = dir.path("beeline-4194312-4711");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_FALSE(swept(pipe));
  }
  SECTION("a directory") {
    const std::string inner = dir.path("beeline-4194312-4711");
    REQUIRE(::mkdir(inner.c_str(), 0700) == 0);
    CHECK_FALSE(swept(inner));
  }
  SECTION("another user's page") {
    if (::geteuid() != 0) return;  // only root can give a file away
    const std::string page = leave_page(dir);
    REQUIRE(::chown(page.c_str(), 1, 1) == 0);
    CHECK_FALSE(swept(page));
  }
}

TEST_CASE("sweep: a missing directory is no error", "[unit][stats]") {
  CHECK(sweep_dead_pages("/nonexistent", 0) == 0);
}

TEST_CASE("sweep: a file name can be parsed again", "[unit][stats]") {
  const std::optional<PageOwner> owner = parse_page_file_name(page_file_name({42, 1ULL << 60}));
  REQUIRE(owner);
  CHECK(owner->pid == 42);
  CHECK(owner->start_time == 1ULL << 60);
}

TEST_CASE("process identity: a process that does not exist has no start time", "[unit][stats]") {
  CHECK(process_start_time(::getpid()).value_or(0) > 0);
  CHECK(process_start_time(1).value_or(0) <= process_start_time(::getpid()));
  CHECK_FALSE(process_start_time(static_cast<pid_t>(kNobody.pid)));
}

}  // namespace
}  // namespace beeline
