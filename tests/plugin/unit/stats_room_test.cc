// SPDX-License-Identifier: Apache-2.0
//
// No room for the statistics page: this must never kill the process.
#ifndef __SANITIZE_THREAD__  // it does not support fork
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <functional>

#include "plugin/stats/stats_page.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/stats_dir.h"
#include "tools/pages/page_reader.h"

namespace beeline {
namespace {

using test::StatsDir;

constexpr int kCannotMount = 77;
constexpr int kWarned = 100;

// Runs the body in a process of its own. Returns its exit status, or minus the signal that ended
// it.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  BL_MUST(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  BL_MUST(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Mounts a tmpfs of this many pages over the directory, visible in this process only.
bool mount_small(const StatsDir& dir, int pages) {
  const std::string size = "size=" + std::to_string(pages * ::sysconf(_SC_PAGESIZE));
  return (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", dir.path().c_str(), "tmpfs", 0, size.c_str()) == 0;
}

TEST_CASE("stats: on a full file system connections are not shown, and work",
          "[unit][stats][full_disk]") {
  const StatsDir dir;
  const int pages = GENERATE(0, 1, 4);
  const int rc = in_child([&] {
    if (!mount_small(dir, std::max(pages, 1))) return kCannotMount;
    if (pages == 0) std::ofstream(dir.path("full")) << "x";  // takes a page
    StatsPage page = StatsPage::open({.directory = dir.path(), .slot_count = 64});
    std::array<StatsSlot, 64> slots;
    int shown = 0;
    for (StatsSlot& slot : slots) {
      slot = page.acquire(SlotRole::kSend, "a");
      for (std::uint32_t i = 0; i < BEELINE_STATS_SIZES; ++i) slot.add_grant(i);
      slot.set_peer("host", "device");
      shown += slot.is_shown() ? 1 : 0;
    }
    if (!page.path().empty()) return shown;
    return page.finding()->severity == Severity::kWarning ? kWarned : 1;
  });
  if (rc == kCannotMount) test::skip_program("mounting is not allowed here");
  if (pages == 0) CHECK(rc == kWarned);
  // The first page holds the header, and has no room for a slot.
  if (pages == 1) CHECK(rc == 0);
  if (pages == 4) {
    CHECK(rc > 0);
    CHECK(rc <= 3 * ::sysconf(_SC_PAGESIZE) / static_cast<long>(sizeof(beeline_stats_slot)));
  }
}

TEST_CASE("stats: a limit on the size of files is kept", "[unit][stats]") {
  const StatsDir dir;
  const int rc = in_child([&] {
    const rlimit small{BEELINE_STATS_HEADER_BYTES, BEELINE_STATS_HEADER_BYTES};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
    StatsPage page = StatsPage::open({.directory = dir.path()});
    StatsSlot slot = page.acquire(SlotRole::kSend, "a");
    slot.add(Counter::kMessages);
    return page.path().empty() && page.finding()->severity == Severity::kWarning ? 0 : 2;
  });
  CHECK(rc == 0);
  CHECK(dir.entries() == 0);  // no incomplete file is left
}

}  // namespace
}  // namespace beeline
#endif
