// SPDX-License-Identifier: Apache-2.0
//
// The reader's half of the rules in include/beeline/stats_page.h.
#include "tools/pages/page_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace beeline {
namespace {

constexpr int kSlotTries = 100;
constexpr const char* kNotWritten = "the statistics page is not written yet";

// False if the file has ended before. The kernel copies: to read a mapping would end this process
// where the file has become shorter, and would fill the holes of a sparse file with memory.
template <class T>
bool copy_from(int file, std::size_t offset, T& to) noexcept {
  return ::pread(file, &to, sizeof to, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof to);
}

// Three copies of a slot, made in this order. A number that is equal in the first and the third
// copy was valid in the second. Without the events, only `generation` is copied three times.
struct Copies {
  beeline_stats_slot first;
  beeline_stats_slot second;
  beeline_stats_slot third;
};

// Another process has written the text. Bytes that could control a terminal become question marks.
template <size_t N>
std::string text_in(const char (&place)[N]) {
  std::string text;
  for (const char c : place) {
    if (c == '\0') break;
    text.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  }
  return text;
}

using Claimed = std::uint64_t beeline_stats_slot::*;

// Of a ring of events, of which so many have been written. Several threads may write them, and one
// that was killed may have left an old event in a new one's place.
template <std::size_t N>
std::vector<EventView> events_in(const Copies& copies, Claimed claimed,
                                 beeline_stats_event (beeline_stats_slot::*ring)[N]) {
  std::vector<EventView> events;
  const std::uint64_t end = copies.first.*claimed;
  for (std::uint64_t number = end - std::min<std::uint64_t>(end, N); number < end; ++number) {
    const std::uint64_t what = (copies.first.*ring)[number % N].what;
    if (what == 0 || (copies.third.*ring)[number % N].what != what) continue;
    if (copies.third.*claimed > number + N) continue;
    const beeline_stats_event& event = (copies.second.*ring)[number % N];
    events.push_back({event.time_ns, static_cast<Event>(beeline_stats_kind(what)),
                      beeline_stats_rail(what), beeline_stats_arg(what), event.value});
  }
  std::ranges::stable_sort(events, {}, &EventView::time_ns);
  return events;
}

std::vector<PathView> paths_in(const beeline_stats_slot& slot) {
  std::vector<PathView> paths;
  for (const beeline_stats_path& path : slot.paths) {
    const auto health = static_cast<PathHealth>(path.state);
    if (health == PathHealth::kNone) continue;
    paths.push_back(
        {health, path.bytes, path.failures, text_in(path.device), text_in(path.own_device)});
  }
  return paths;
}

SlotView view_of(const beeline_stats_slot& slot) {
  SlotView view{
      .id = slot.id,
      .state = static_cast<SlotState>(slot.state),
      .role = static_cast<SlotRole>(slot.role),
      .opened_ns = slot.opened_ns,
      .closed_ns = slot.closed_ns,
      .counters = {},
      .device = text_in(slot.device),
      .peer_host = text_in(slot.peer_host),
      .peer_device = text_in(slot.peer_device),
      .quiet_since_ns = slot.quiet_since_ns,
      .waits_for = static_cast<Wait>(slot.waits_for),
      .waits_since_ns = slot.waits_since_ns,
      .requests = slot.requests,
      .moved_ns = slot.moved_ns,
      .peer_pid = slot.peer_pid,
      .number = slot.number,
      .peer_number = slot.peer_number,
      .peer_identity = slot.peer_identity,
      .paths = paths_in(slot),
      .peer_clock = {.ahead_ns = slot.peer_clock_ns,
                     .error_ns = static_cast<std::int64_t>(slot.peer_clock_error_ns)},
      .life = {},
      .looks = {},
      .sizes = {},
  };
  std::ranges::copy(slot.counters, view.counters);
  return view;
}

void add_history(SlotView& view, const Copies& copies) {
  view.life = events_in(copies, &beeline_stats_slot::life_claimed, &beeline_stats_slot::life);
  view.looks = events_in(copies, &beeline_stats_slot::looks_claimed, &beeline_stats_slot::looks);
  view.sizes.assign(std::begin(copies.second.sizes), std::end(copies.second.sizes));
}

Status check(const beeline_stats_header& it, std::size_t length) noexcept {
  if (it.version != BEELINE_STATS_VERSION) {
    return fail(Errc::kUnsupported, "a statistics page of another version");
  }
  const bool sizes =
      it.header_bytes == BEELINE_STATS_HEADER_BYTES &&
      it.slot_bytes == sizeof(beeline_stats_slot) && it.life_events == BEELINE_STATS_LIFE_EVENTS &&
      it.sizes == BEELINE_STATS_SIZES && it.counter_count == BEELINE_STATS_COUNTER_COUNT;
  const size_t room = (length - BEELINE_STATS_HEADER_BYTES) / sizeof(beeline_stats_slot);
  if (!sizes || it.slot_count > std::min<std::size_t>(room, BEELINE_STATS_MOST_SLOTS)) {
    return fail(Errc::kInvalid, "a statistics page with wrong sizes");
  }
  return {};
}

}  // namespace

Result<PageReader> PageReader::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return fail_errno("open the statistics page");
  const auto length = static_cast<size_t>(file.st_size);
  if (S_ISREG(file.st_mode) && length == 0) return fail(Errc::kBusy, kNotWritten);
  if (!S_ISREG(file.st_mode) || length < BEELINE_STATS_HEADER_BYTES) {
    return fail(Errc::kInvalid, "too small for a statistics page");
  }
  // The magic number is written last, so it is read first.
  std::uint64_t magic = 0;
  beeline_stats_header header{};
  if (!copy_from(fd.get(), offsetof(beeline_stats_header, magic), magic) ||
      !copy_from(fd.get(), 0, header)) {
    return fail(Errc::kInvalid, "too small for a statistics page");
  }
  if (magic == 0) return fail(Errc::kBusy, kNotWritten);
  if (magic != BEELINE_STATS_MAGIC) return fail(Errc::kInvalid, "not a statistics page");
  BL_TRY(check(header, length));
  return PageReader(std::move(fd), header, file.st_uid);
}

std::string PageReader::host() const { return text_in(header_.host); }
std::string PageReader::build() const { return text_in(header_.build); }
std::string PageReader::job() const { return text_in(header_.job); }
std::optional<std::uint32_t> PageReader::rank() const noexcept {
  if (header_.rank > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(header_.rank);
}
std::optional<std::uint32_t> PageReader::ranks() const noexcept {
  if (header_.ranks == 0 || header_.ranks > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(header_.ranks);
}

// Never more than there is room for, whatever the page says now.
std::uint32_t PageReader::slots_used() const noexcept {
  std::uint32_t used = 0;
  if (!copy_from(file_.get(), offsetof(beeline_stats_header, slots_used), used)) return 0;
  return std::min(used, header_.slot_count);
}

std::optional<SlotView> PageReader::slot(std::uint32_t index) const {
  return read_slot(index, Parts::kAll);
}

std::optional<SlotView> PageReader::brief_slot(std::uint32_t index) const {
  return read_slot(index, Parts::kBrief);
}

std::optional<SlotView> PageReader::read_slot(std::uint32_t index, Parts parts) const {
  if (index >= header_.slot_count) return std::nullopt;
  const std::size_t offset =
      BEELINE_STATS_HEADER_BYTES + std::size_t{index} * sizeof(beeline_stats_slot);
  Copies copies;
  const auto copy = [&](beeline_stats_slot& to) {
    return parts == Parts::kAll ? copy_from(file_.get(), offset, to)
                                : copy_from(file_.get(), offset, to.generation);
  };
  static_assert(offsetof(beeline_stats_slot, generation) == 0);
  for (int tried = 0; tried < kSlotTries; ++tried) {
    if (!copy(copies.first)) return std::nullopt;
    const std::uint32_t generation = copies.first.generation;
    if (generation == 0) return std::nullopt;  // never used, or a hole
    if (generation % 2 != 0) continue;
    if (!copy_from(file_.get(), offset, copies.second) || !copy(copies.third)) return std::nullopt;
    if (copies.third.generation != generation) continue;
    SlotView view = view_of(copies.second);
    if (parts == Parts::kAll) add_history(view, copies);
    return view;
  }
  return std::nullopt;
}

std::vector<bool> own_ports_down(const SlotView& connection) {
  std::vector<bool> is_down(connection.paths.size());
  for (const EventView& event : connection.life) {
    if (event.rail >= is_down.size()) continue;
    if (event.event == Event::kPortDown) is_down[event.rail] = true;
    if (event.event == Event::kPathUp) is_down[event.rail] = false;
  }
  return is_down;
}

}  // namespace beeline
