// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/mr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "softnic/nic/deferred_writes.h"
#include "softnic/nic/fence.h"

namespace softnic {
namespace {

using beeline::Result;

constexpr unsigned int kRemoteWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
// Optional access flags such as relaxed ordering, which a device may ignore.
constexpr unsigned int kHints = IBV_ACCESS_OPTIONAL_RANGE;

// A call for no bytes shows whether the kernel knows this advice (Linux 5.14 or later).
bool can_populate_pages() {
  static const bool can = ::madvise(nullptr, 0, MADV_POPULATE_READ) == 0;
  return can;
}

// Faults the pages in, and fails where pinning by a NIC's driver would fail.
int pin(void* addr, std::size_t length, unsigned int access) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(addr) & ~(page - 1);
  const std::uintptr_t end =
      (reinterpret_cast<std::uintptr_t>(addr) + length + page - 1) & ~(page - 1);
  auto* start = reinterpret_cast<void*>(first);
  if (can_populate_pages()) {
    const bool written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    return ::madvise(start, end - first, written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0
               ? 0
               : EFAULT;
  }
  std::vector<unsigned char> resident((end - first) / page);
  return ::mincore(start, end - first, resident.data()) == 0 ? 0 : EFAULT;
}

// Before Linux 5.14 the kernel reports reserved addresses, such as a GPU's, as mapped, so the
// driver is asked first.
bool is_host_memory(Runtime& runtime, void* addr, std::size_t length, unsigned int access) {
  if (!can_populate_pages() &&
      runtime.mirrors().is_on_gpu(reinterpret_cast<std::uint64_t>(addr), length)) {
    return false;
  }
  return pin(addr, length, access) == 0;
}

int check_request(std::uint64_t start, std::size_t length, unsigned int access) {
  if ((access & ~(kRights | kHints)) != 0) return EOPNOTSUPP;
  if ((access & kRemoteWriters) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  if (length == 0 || start + length < length) return EINVAL;
  return 0;
}

bool is_writable(unsigned int access) { return (access & IBV_ACCESS_LOCAL_WRITE) != 0; }

// If there is no memory for it, writes are not deferred, which the hazard permits.
void start_deferring(Runtime& runtime, Mr& mr, MrRecord& record) {
  const auto ring = runtime.take_ring(kMaxDeferred * sizeof(DeferredRange));
  if (!ring) return;
  void* const staging = ::mmap(nullptr, mr.length, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (staging == MAP_FAILED) {
    runtime.give_back_ring(*ring, kMaxDeferred * sizeof(DeferredRange));
    return;
  }
  mr.staging = Mapping(staging, mr.length);
  record.staging = reinterpret_cast<std::uint64_t>(staging);
  record.deferred_offset = *ring;
  record.deferred_count.store(0);
  record.defers_writes = 1;
  runtime.hiding_regions().add(record);
  call_at_flush(reveal_hidden_writes);
}

void stop_deferring(Runtime& runtime, MrRecord& record) {
  if (record.defers_writes == 0) return;
  if (record.mirror != 0) {
    runtime.mirrors().remove(record.mirror);
  } else {
    runtime.hiding_regions().remove(record);
    (void)apply_own_deferred(runtime, record, record.base, record.length);
  }
  record.defers_writes = 0;
  record.mirror = 0;
  runtime.give_back_ring(record.deferred_offset, kMaxDeferred * sizeof(DeferredRange));
}

// Sets up the record of a region of GPU memory that cannot be mapped.
bool mirror_memory(Runtime& runtime, MrRecord& record, std::unique_ptr<GpuMirror> mirror) {
  const auto ring = runtime.take_ring(kMaxDeferred * sizeof(DeferredRange));
  if (!ring) return false;
  record.base = mirror->outbox();
  record.staging = mirror->inbox();
  record.deferred_offset = *ring;
  record.deferred_count.store(0);
  record.defers_writes = 1;
  record.mirror = runtime.mirrors().add(record, std::move(mirror));
  if (record.mirror != 0) return true;
  runtime.give_back_ring(*ring, kMaxDeferred * sizeof(DeferredRange));
  return false;
}

// The memory of a region: at `base` in the program's host memory, in `window`, or behind `mirror`.
struct Bytes {
  void* base = nullptr;
  FileWindow window;
  std::unique_ptr<GpuMirror> mirror;
};

Mr* publish(Pd& pd, Bytes bytes, std::size_t length, std::uint64_t iova, unsigned int access) {
  Runtime& runtime = *pd.owner.runtime;
  const auto index = runtime.mr_indices().take();
  const auto refuse = [&]() -> Mr* {
    if (index) runtime.mr_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  };
  if (!index || !runtime.allocate_pages_of(runtime.arena().mr(*index))) return refuse();
  MrRecord& record = runtime.arena().mr(*index);
  record.pd = pd.number;
  record.access = access;
  record.iova = iova;
  record.length = length;
  record.base = reinterpret_cast<std::uint64_t>(bytes.window ? bytes.window.start() : bytes.base);
  record.defers_writes = 0;
  record.mirror = 0;
  if (bytes.mirror && !mirror_memory(runtime, record, std::move(bytes.mirror))) return refuse();
  const auto reuse = static_cast<std::uint8_t>(runtime.next_serial());
  Mr* mr = new Mr(pd, *index, make_key(runtime.slot(), *index, reuse));
  mr->addr = bytes.base;
  mr->length = length;
  mr->window = std::move(bytes.window);
  if (mr->window && runtime.header().hazards.hide.load() != 0)
    start_deferring(runtime, *mr, record);
  record.key.store(mr->rkey);
  return mr;
}

// Uses the mapping, or else a mirror of the GPU memory at `address`. Returns an errno.
int access_gpu_memory(Pd& pd, Result<FileWindow, int> mapped, std::uint64_t address,
                      std::size_t length, Bytes& bytes) {
  if (pd.owner.record().refuses_gpu_memory.load() != 0) return EOPNOTSUPP;
  if (mapped) {
    bytes.window = std::move(*mapped);
    return 0;
  }
  if (mapped.error() != ENOSYS) return mapped.error();
  auto mirror = pd.owner.runtime->mirrors().make(address, length);
  if (!mirror) return mirror.error();
  bytes.mirror = std::move(*mirror);
  return 0;
}

// A NIC can register such a dma-buf and softnic cannot, so it explains that once.
void explain_no_mirror(int fd) {
  static std::once_flag explained;
  std::call_once(explained, [fd] {
    std::fprintf(
        stderr,
        "softnic: cannot register descriptor %d: it cannot be mapped, and its iova is not GPU "
        "memory; register the dma-buf of a real GPU with its device pointer as the iova\n",
        fd);
  });
}

}  // namespace

Mr::Mr(Pd& the_owner, std::uint32_t the_index, std::uint32_t key) noexcept
    : ibv_mr{}, owner(the_owner), index(the_index) {
  context = owner.context;
  pd = &owner;
  handle = the_index;
  lkey = key;
  rkey = key;
  owner.children.fetch_add(1, std::memory_order_relaxed);
}

Mr::~Mr() { owner.children.fetch_sub(1, std::memory_order_relaxed); }

Mr* register_memory(Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                    unsigned int access) {
  errno = check_request(reinterpret_cast<std::uint64_t>(addr), length, access);
  if (errno != 0) return nullptr;
  Bytes bytes;
  bytes.base = addr;
  if (!is_host_memory(*pd.owner.runtime, addr, length, access)) {
    errno = access_gpu_memory(pd, map_gpu_memory(addr, length, is_writable(access)),
                              reinterpret_cast<std::uint64_t>(addr), length, bytes);
    // Without a peer-memory driver, the kernel sees an address that is not mapped.
    if (errno == EOPNOTSUPP) errno = EFAULT;
    if (errno != 0) return nullptr;
  }
  return publish(pd, std::move(bytes), length, iova, access);
}

// As in the kernel, `iova` and `offset` must have the same offset within a page.
Mr* register_dmabuf(Pd& pd, int fd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                    unsigned int access) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  errno = offset % page != iova % page ? EINVAL : check_request(offset, length, access);
  if (errno != 0) return nullptr;
  Bytes bytes;
  bytes.base = reinterpret_cast<void*>(iova);
  errno = access_gpu_memory(pd, map_dmabuf(fd, offset, length, is_writable(access)), iova, length,
                            bytes);
  if (errno == EFAULT) explain_no_mirror(fd);
  if (errno != 0) return nullptr;
  return publish(pd, std::move(bytes), length, iova, access);
}

void deregister_memory(Mr* mr) {
  Runtime& runtime = *mr->owner.owner.runtime;
  runtime.arena().mr(mr->index).key.exchange(0);
  wait_for_all_requesters(runtime);
  stop_deferring(runtime, runtime.arena().mr(mr->index));
  runtime.mr_indices().give_back(mr->index);
  delete mr;
}

Translation translate(const Arena& arena, std::uint32_t slot, std::uint32_t key, std::uint32_t pd,
                      std::uint64_t address, std::uint64_t length,
                      std::uint32_t access_wanted) noexcept {
  if (key_slot(key) != slot) return {};
  MrRecord& region = arena.mr(key_index(key));
  if (key == 0 || region.key.load(std::memory_order_seq_cst) != key) return {};
  if (region.pd != pd || (region.access & access_wanted) != access_wanted) return {};
  if (address < region.iova || length > region.length ||
      address - region.iova > region.length - length) {
    return {};
  }
  return {true, region.base + (address - region.iova),
          region.defers_writes != 0 ? &region : nullptr};
}

}  // namespace softnic
