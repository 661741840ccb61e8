// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/stats_page.h"

#include <unistd.h>

#include <cerrno>

#include "common/base/host.h"
#include "plugin/stats/sweep.h"

namespace beeline {
namespace {

std::uint64_t unix_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec * kNsPerSec + now.tv_nsec);
}

// The magic number is written last: a reader that sees it sees the rest as well.
void fill_header(beeline_stats_header& header, const StatsPage::Options& options,
                 std::uint32_t slot_count, const PageOwner& owner) {
  using shared::store;
  store(header.version, BEELINE_STATS_VERSION);
  store(header.header_bytes, BEELINE_STATS_HEADER_BYTES);
  store(header.slot_bytes, sizeof(beeline_stats_slot));
  store(header.slot_count, slot_count);
  store(header.life_events, BEELINE_STATS_LIFE_EVENTS);
  store(header.sizes, BEELINE_STATS_SIZES);
  store(header.counter_count, BEELINE_STATS_COUNTER_COUNT);
  store(header.pid, static_cast<std::uint64_t>(owner.pid));
  store(header.start_time, owner.start_time);
  store(header.opened_ns, static_cast<std::uint64_t>(now_ns()));
  store(header.opened_unix_ns, unix_now_ns());
  shared::store_text(header.host, host_name());
  shared::store_text(header.build, options.build);
  store(header.rank, options.rank ? *options.rank : UINT64_MAX);
  store(header.ranks, options.ranks ? *options.ranks : UINT64_MAX);
  shared::store_text(header.job, options.job);
  store(header.magic, BEELINE_STATS_MAGIC, std::memory_order_release);
}

PageMemory open_private(std::uint32_t slot_count) {
  Result<PageMemory> memory = PageMemory::create_private(slot_count);
  return memory ? *std::move(memory) : PageMemory();
}

// Whether the folder can be used in principle: otherwise there was a warning about the setting.
bool is_full(const Error& error) noexcept {
  return error.sys_errno == ENOSPC || error.sys_errno == EDQUOT || error.sys_errno == EFBIG;
}

Finding page_failed(const std::string& path, const std::string& folder, const Error& error) {
  Finding finding = {.id = "stats-page-failed",
                     .fact = "no statistics page: " + path + ": " + describe(error),
                     .why = "its counters are in memory that other processes cannot read"};
  if (is_full(error)) {
    finding.severity = Severity::kWarning;
    finding.why = "beeline hang, top, replay and export will not show this process";
    finding.fix = "free some space in " + folder +
                  " (df), or raise the limit on the size of files (ulimit -f), or set "
                  "BEELINE_STATS_DIR to another folder";
  }
  return finding;
}

struct Opened {
  PageMemory memory;
  std::optional<Finding> finding = {};
};

Opened open_memory(const StatsPage::Options& options, const PageOwner& owner) {
  if (!options.shown) return {open_private(options.slot_count)};
  const std::size_t dead = sweep_dead_pages(options.directory);
  const std::string path = options.directory + "/" + page_file_name(owner);
  Result<PageMemory> memory = PageMemory::create_file(path, options.slot_count);
  if (!memory) {
    return {open_private(options.slot_count), page_failed(path, options.directory, memory.error())};
  }
  Finding finding = {.id = "stats-page", .fact = "statistics page " + path};
  if (dead != 0) {
    finding.fact +=
        "; pages of processes that crashed or failed, in the same folder: " + std::to_string(dead);
  }
  return {*std::move(memory), std::move(finding)};
}

}  // namespace

StatsPage StatsPage::open(const Options& options) {
  const pid_t pid = ::getpid();
  const PageOwner owner{pid, process_start_time(pid).value_or(0)};
  Opened opened = open_memory(options, owner);
  PageMemory& memory = opened.memory;
  if (memory.header() != nullptr) {
    fill_header(*memory.header(), options, memory.slot_count(), owner);
  }
  return StatsPage(std::move(memory), std::move(opened.finding));
}

}  // namespace beeline
