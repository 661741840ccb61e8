// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/runtime.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "softnic/fabric/file_limit.h"
#include "softnic/fabric/file_lock.h"
#include "softnic/fabric/leftovers.h"
#include "softnic/nic/qp.h"

namespace softnic {
namespace {

using beeline::fail;
using beeline::UniqueFd;

struct Current {
  std::mutex mutex;
  std::weak_ptr<Runtime> runtime;
};

// Never destroyed, because programs call verbs from static destructors.
Current& current() {
  static auto* instance = new Current;
  return *instance;
}

std::string because(const std::string& what) { return what + ": " + std::strerror(errno); }

const char* env_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

beeline::Outcome<UniqueFd> make_arena_file(const PrivateDir& dir, const std::string& name) {
  const FileLimitIsAnError guard;
  UniqueFd file = dir.open_file(name, O_CREAT | O_TRUNC);
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(kArenaBytes)) != 0 ||
      ::fallocate(file.get(), 0, 0, sizeof(ArenaHeader)) != 0) {
    return fail(because("cannot create " + dir.path() + "/" + name));
  }
  return file;
}

}  // namespace

beeline::Outcome<std::shared_ptr<Runtime>> Runtime::get() {
  static std::once_flag registered;
  std::call_once(registered, [] { pthread_atfork(before_fork, after_fork, after_fork_in_child); });
  const std::lock_guard guard(current().mutex);
  if (auto runtime = current().runtime.lock()) return runtime;
  auto runtime = BL_TRY(join(env_or("SOFTNIC_FABRIC", "default"), env_or("SOFTNIC_HOST", nullptr)));
  current().runtime = runtime;
  return runtime;
}

std::shared_ptr<Runtime> Runtime::find() {
  const std::lock_guard guard(current().mutex);
  return current().runtime.lock();
}

// A forked child has no engine thread and no seat. It does not touch its parent's objects. It
// closes its copy of the parent's lock; otherwise the parent would look alive as long as the child
// lives.
void Runtime::after_fork_in_child() {
  if (auto runtime = current().runtime.lock()) runtime->detach_in_child();
  current().runtime.reset();
  current().mutex.unlock();
}

void Runtime::before_fork() { current().mutex.lock(); }
void Runtime::after_fork() { current().mutex.unlock(); }

// Replaces the arena by zero pages, so that the child's copies of objects see QPs in RESET and
// change nothing of the parent.
void Runtime::detach_in_child() noexcept {
  seat_lock_.reset();
  engine_.abandon();
  (void)::mmap(mapping_.base(), mapping_.length(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool Runtime::is_ours() const noexcept { return ::getpid() == pid_; }

beeline::Outcome<std::shared_ptr<Runtime>> Runtime::join(const char* fabric_name,
                                                         const char* host_name) {
  const std::string dir = BL_TRY(state_dir(fabric_name));
  // Held until the seat is taken, so that the fabric is not removed or created anew in between.
  errno = 0;
  const auto lock = DirLock::take(dir, DirLock::Missing::kFail);
  Fabric fabric = BL_TRY(Fabric::open(fabric_name));
  if (!lock) return fail(lock.error());
  std::uint32_t host = 0;
  if (host_name != nullptr) {
    const auto found = fabric.find_host(host_name);
    if (!found) {
      errno = EINVAL;
      return fail("fabric '" + fabric.name() + "' has no host '" + host_name +
                  "': `softnic ls` shows its hosts");
    }
    host = *found;
  }
  Seat seat = BL_TRY(take_seat(fabric, host));
  return std::shared_ptr<Runtime>(new Runtime(std::move(fabric), host, std::move(seat)));
}

// The caller holds the directory's lock.
beeline::Outcome<Runtime::Seat> Runtime::take_seat(const Fabric& fabric, std::uint32_t host) {
  UniqueFd seats = fabric.files().open_file("seats", 0);
  if (!seats) return fail(because("cannot open " + fabric.dir() + "/seats"));
  std::uint32_t slot = 0;
  while (slot < kMaxSlots && !try_lock_byte(seats.get(), slot)) ++slot;
  if (slot == kMaxSlots) {
    errno = EUSERS;
    return fail("fabric '" + fabric.name() + "' is full: it has room for " +
                std::to_string(kMaxSlots) + " processes at a time");
  }
  SlotRecord& record = fabric.header().slots[slot];
  record.epoch.store(0);
  remove_slot_files(fabric.files(), slot);
  const std::uint64_t epoch = fabric.header().next_epoch.fetch_add(1);
  const std::string name = "arena." + std::to_string(slot);
  UniqueFd file = BL_TRY(make_arena_file(fabric.files(), name));
  Mapping arena = Mapping::of_file(file.get(), kArenaBytes);
  if (!arena) return fail(because("cannot map " + fabric.dir() + "/" + name));
  Arena(arena.base()).header().epoch = epoch;
  // For kernels with Yama: allows the other processes of the fabric to access this one's memory.
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  record.pid.store(static_cast<std::uint32_t>(::getpid()));
  record.host.store(host);
  record.epoch.store(epoch);  // last: from here on peers may open this process
  return Seat{slot, epoch, std::move(seats), std::move(file), std::move(arena)};
}

Runtime::Runtime(Fabric fabric, std::uint32_t host, Seat&& seat)
    : pid_(::getpid()),
      fabric_(std::move(fabric)),
      host_(host),
      slot_(seat.slot),
      epoch_(seat.epoch),
      seat_lock_(std::move(seat.lock)),
      arena_file_(std::move(seat.file)),
      mapping_(std::move(seat.arena)),
      arena_(mapping_.base()),
      clock_scale_(fabric_.header().clock_scale),
      // The next process in this slot starts with other indices, so QPNs and keys are not reused
      // soon.
      qp_indices_(kMaxQps, static_cast<std::uint32_t>(seat.epoch * 977)),
      cq_indices_(kMaxCqs, 0),
      mr_indices_(kMaxMrs, static_cast<std::uint32_t>(seat.epoch * 613)),
      srq_indices_(kMaxSrqs, 0),
      serials_(seat.epoch << 32 | 1) {}

Runtime::~Runtime() {
  if (!is_ours()) return;
  header().slots[slot_].epoch.store(0);
  remove_slot_files(fabric_.files(), slot_);
  seat_lock_.reset();
  clean_up_fabric(fabric_.name());
}

std::string Runtime::sysfs_root() const {
  return fabric_.sysfs_root(fabric_.header().hosts[host_].name);
}

bool Runtime::allocate_pages(const std::byte* start, std::uint64_t bytes) noexcept {
  const FileLimitIsAnError guard;
  return ::fallocate(arena_file_.get(), 0, start - mapping_.base(), static_cast<off_t>(bytes)) == 0;
}

std::optional<std::uint64_t> Runtime::take_ring(std::uint64_t bytes) {
  const auto offset = rings_.take(bytes);
  if (offset && !allocate_pages(mapping_.base() + kRingsOffset + *offset, bytes)) {
    rings_.give_back(*offset, bytes);
    return std::nullopt;
  }
  return offset;
}

std::shared_ptr<Peer> Runtime::peer(std::uint32_t slot) {
  const std::lock_guard guard(peers_mutex_);
  std::shared_ptr<Peer>& cached = peers_[slot];
  if (!cached || !cached->has_seat()) cached = Peer::open(fabric_, slot);
  return cached;
}

void Runtime::flush_broken_qps() {
  const std::uint32_t now = arena_.header().break_count.load();
  if (seen_break_count_.load(std::memory_order_relaxed) == now) [[likely]]
    return;
  bool all_finished = true;
  qp_list_.for_each([&](Qp& qp) { all_finished = qp.finish_error_transition() && all_finished; });
  if (all_finished) seen_break_count_.store(now, std::memory_order_relaxed);
}

}  // namespace softnic
