// SPDX-License-Identifier: Apache-2.0
//
// The reader's half of the rules in include/beeline/stats_page.h.
#include "tools/pages/page_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/fd.h"
#include "plugin/stats/shared_word.h"

namespace beeline {
namespace {

constexpr auto kAcquire = std::memory_order_acquire;
constexpr int kSlotTries = 100;
constexpr std::uint32_t kMostSlots = 1 << 16;  // of a page that is taken seriously

// Another process has written the text. Bytes that could control a terminal become question marks.
template <size_t N>
std::string load_text(const char (&place)[N]) {
  std::string text;
  for (const char& letter : place) {
    const char c = shared::load(letter, kAcquire);
    if (c == '\0') break;
    text.push_back(c >= 0x20 && c < 0x7f ? c : '?');
  }
  return text;
}

std::optional<EventView> load_event(const beeline_stats_event& event) {
  const std::uint64_t what = shared::load(event.what, kAcquire);
  const std::uint64_t time_ns = shared::load(event.time_ns, kAcquire);
  const std::uint64_t value = shared::load(event.value, kAcquire);
  if (what == 0 || shared::load(event.what, kAcquire) != what) return std::nullopt;
  return EventView{time_ns, static_cast<Event>(beeline_stats_kind(what)), beeline_stats_rail(what),
                   beeline_stats_arg(what), value};
}

// Of a ring of events, of which so many have been written. Several threads may write them, and one
// that was killed may have left an old event in a new one's place.
template <std::size_t N>
std::vector<EventView> load_events(const std::uint64_t& claimed,
                                   const beeline_stats_event (&ring)[N]) {
  std::vector<EventView> events;
  const std::uint64_t end = shared::load(claimed, kAcquire);
  for (std::uint64_t number = end - std::min<std::uint64_t>(end, N); number < end; ++number) {
    const std::optional<EventView> event = load_event(ring[number % N]);
    if (event && shared::load(claimed, kAcquire) <= number + N) events.push_back(*event);
  }
  std::ranges::stable_sort(events, {}, &EventView::time_ns);
  return events;
}

std::vector<PathView> load_paths(const beeline_stats_slot& slot) {
  std::vector<PathView> paths;
  for (const beeline_stats_path& path : slot.paths) {
    const auto health = static_cast<PathHealth>(shared::load(path.state, kAcquire));
    if (health == PathHealth::kNone) continue;
    paths.push_back({health, shared::load(path.bytes, kAcquire),
                     shared::load(path.failures, kAcquire), load_text(path.device)});
  }
  return paths;
}

SlotView copy_slot(const beeline_stats_slot& slot) {
  SlotView view{
      .id = shared::load(slot.id, kAcquire),
      .state = static_cast<SlotState>(shared::load(slot.state, kAcquire)),
      .role = static_cast<SlotRole>(shared::load(slot.role, kAcquire)),
      .opened_ns = shared::load(slot.opened_ns, kAcquire),
      .closed_ns = shared::load(slot.closed_ns, kAcquire),
      .counters = {},
      .device = load_text(slot.device),
      .peer_host = load_text(slot.peer_host),
      .peer_device = load_text(slot.peer_device),
      .quiet_since_ns = shared::load(slot.quiet_since_ns, kAcquire),
      .waits_for = static_cast<Wait>(shared::load(slot.waits_for, kAcquire)),
      .waits_since_ns = shared::load(slot.waits_since_ns, kAcquire),
      .requests = shared::load(slot.requests, kAcquire),
      .moved_ns = shared::load(slot.moved_ns, kAcquire),
      .peer_pid = shared::load(slot.peer_pid, kAcquire),
      .number = shared::load(slot.number, kAcquire),
      .peer_number = shared::load(slot.peer_number, kAcquire),
      .peer_identity = shared::load(slot.peer_identity, kAcquire),
      .paths = load_paths(slot),
      .peer_clock = {.ahead_ns = shared::load(slot.peer_clock_ns, kAcquire),
                     .error_ns = static_cast<std::int64_t>(
                         shared::load(slot.peer_clock_error_ns, kAcquire))},
      .life = {},
      .looks = {},
      .sizes = {},
  };
  for (size_t i = 0; i < BEELINE_STATS_COUNTER_COUNT; ++i) {
    view.counters[i] = shared::load(slot.counters[i], kAcquire);
  }
  return view;
}

void add_history(SlotView& view, const beeline_stats_slot& slot) {
  view.life = load_events(slot.life_claimed, slot.life);
  view.looks = load_events(slot.looks_claimed, slot.looks);
  for (const std::uint32_t& size : slot.sizes) view.sizes.push_back(shared::load(size, kAcquire));
}

}  // namespace

Result<PageReader> PageReader::open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return fail_errno("open the statistics page");
  const auto length = static_cast<size_t>(file.st_size);
  if (!S_ISREG(file.st_mode) || length < BEELINE_STATS_HEADER_BYTES) {
    return fail(Errc::kInvalid, "too small for a statistics page");
  }
  void* start = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return fail_errno("map the statistics page");
  PageReader reader(start, length, file.st_uid);
  const Status checked = reader.check();
  if (!checked) return fail(checked.error());
  return reader;
}

PageReader::PageReader(PageReader&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), length_(other.length_), owner_(other.owner_) {}

PageReader::~PageReader() {
  if (start_ != nullptr) ::munmap(start_, length_);
}

const beeline_stats_header& PageReader::header() const noexcept {
  return *static_cast<const beeline_stats_header*>(start_);
}

Status PageReader::check() const noexcept {
  const beeline_stats_header& it = header();
  if (shared::load(it.magic, kAcquire) != BEELINE_STATS_MAGIC) {
    return fail(Errc::kInvalid, "not a statistics page");
  }
  if (it.version != BEELINE_STATS_VERSION) {
    return fail(Errc::kUnsupported, "a statistics page of another version");
  }
  const bool sizes =
      it.header_bytes == BEELINE_STATS_HEADER_BYTES &&
      it.slot_bytes == sizeof(beeline_stats_slot) && it.life_events == BEELINE_STATS_LIFE_EVENTS &&
      it.sizes == BEELINE_STATS_SIZES && it.counter_count == BEELINE_STATS_COUNTER_COUNT;
  const size_t room = (length_ - BEELINE_STATS_HEADER_BYTES) / sizeof(beeline_stats_slot);
  if (!sizes || it.slot_count > std::min<std::size_t>(room, kMostSlots)) {
    return fail(Errc::kInvalid, "a statistics page with wrong sizes");
  }
  return {};
}

std::uint64_t PageReader::pid() const noexcept { return header().pid; }
std::uint64_t PageReader::start_time() const noexcept { return header().start_time; }
std::string PageReader::host() const { return load_text(header().host); }
std::string PageReader::build() const { return load_text(header().build); }
std::optional<std::uint32_t> PageReader::rank() const noexcept {
  const std::uint64_t rank = header().rank;
  if (rank > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(rank);
}
std::optional<std::uint32_t> PageReader::ranks() const noexcept {
  const std::uint64_t ranks = header().ranks;
  if (ranks == 0 || ranks > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(ranks);
}
std::uint64_t PageReader::identity() const noexcept { return shared::load(header().identity); }
std::uint64_t PageReader::opened_ns() const noexcept { return header().opened_ns; }
std::uint64_t PageReader::opened_unix_ns() const noexcept { return header().opened_unix_ns; }
std::uint64_t PageReader::slots_refused() const noexcept {
  return shared::load(header().slots_refused);
}

// Never more than there is room for, whatever the page says now.
std::uint32_t PageReader::slots_used() const noexcept {
  const size_t room = (length_ - BEELINE_STATS_HEADER_BYTES) / sizeof(beeline_stats_slot);
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(room, kMostSlots));
  return std::min(shared::load(header().slots_used, kAcquire), most);
}

std::optional<SlotView> PageReader::slot(std::uint32_t index) const {
  return read_slot(index, Parts::kAll);
}

std::optional<SlotView> PageReader::brief_slot(std::uint32_t index) const {
  return read_slot(index, Parts::kBrief);
}

std::optional<SlotView> PageReader::read_slot(std::uint32_t index, Parts parts) const {
  if (index >= slots_used()) return std::nullopt;
  const auto* bytes = static_cast<const std::byte*>(start_) + BEELINE_STATS_HEADER_BYTES;
  const auto& slot = reinterpret_cast<const beeline_stats_slot*>(bytes)[index];
  for (int tried = 0; tried < kSlotTries; ++tried) {
    const std::uint32_t generation = shared::load(slot.generation, kAcquire);
    if (generation % 2 != 0) continue;
    SlotView view = copy_slot(slot);
    if (parts == Parts::kAll) add_history(view, slot);
    if (shared::load(slot.generation) == generation) return view;
  }
  return std::nullopt;
}

}  // namespace beeline
