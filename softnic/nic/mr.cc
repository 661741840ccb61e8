// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/mr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "softnic/nic/fence.h"

namespace softnic {
namespace {

constexpr unsigned int kRemoteWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
// Hints that a device may ignore: relaxed ordering and its neighbours.
constexpr unsigned int kHints = IBV_ACCESS_OPTIONAL_RANGE;

// A call about no bytes tells whether the kernel (5.14 or later) knows the advice.
bool kernel_can_populate() {
  static const bool can = ::madvise(nullptr, 0, MADV_POPULATE_READ) == 0;
  return can;
}

// Faults the pages in as a NIC's pinning does, and fails where that would.
int pin(void* addr, size_t length, unsigned int access) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(addr) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(addr) + length + page - 1) & ~(page - 1);
  auto* start = reinterpret_cast<void*>(first);
  if (kernel_can_populate()) {
    const bool writes = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    return ::madvise(start, end - first, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0
               ? 0
               : EFAULT;
  }
  std::vector<unsigned char> resident((end - first) / page);
  return ::mincore(start, end - first, resident.data()) == 0 ? 0 : EFAULT;
}

int check_request(const void* addr, size_t length, unsigned int access) {
  if ((access & ~(kRights | kHints)) != 0) return EOPNOTSUPP;
  if ((access & kRemoteWriters) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  if (length == 0 || reinterpret_cast<uintptr_t>(addr) + length < length) return EINVAL;
  return 0;
}

}  // namespace

Mr::Mr(Pd& the_owner, uint32_t the_index, uint32_t key) noexcept
    : ibv_mr{}, owner(the_owner), index(the_index) {
  context = owner.context;
  pd = &owner;
  handle = the_index;
  lkey = key;
  rkey = key;
  owner.children.fetch_add(1, std::memory_order_relaxed);
}

Mr::~Mr() { owner.children.fetch_sub(1, std::memory_order_relaxed); }

Mr* register_memory(Pd& pd, void* addr, size_t length, uint64_t iova, unsigned int access) {
  Runtime& runtime = *pd.owner.runtime;
  errno = check_request(addr, length, access);
  if (errno != 0) return nullptr;
  errno = pin(addr, length, access);
  if (errno != 0) return nullptr;
  const auto index = runtime.mr_indices().take();
  if (!index || !runtime.back(runtime.arena().mr(*index))) {
    if (index) runtime.mr_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  }
  const auto reuse = static_cast<uint8_t>(runtime.next_serial());
  Mr* mr = new Mr(pd, *index, make_key(runtime.slot(), *index, reuse));
  mr->addr = addr;
  mr->length = length;
  MrRecord& record = runtime.arena().mr(*index);
  record.pd = pd.number;
  record.access = access;
  record.iova = iova;
  record.length = length;
  record.base = reinterpret_cast<uint64_t>(addr);
  record.key.store(mr->rkey);
  return mr;
}

void deregister_memory(Mr* mr) {
  Runtime& runtime = *mr->owner.owner.runtime;
  runtime.arena().mr(mr->index).key.exchange(0);
  wait_for_all_requesters(runtime);
  runtime.mr_indices().give_back(mr->index);
  delete mr;
}

Translation translate(const Arena& arena, uint32_t slot, uint32_t key, uint32_t pd,
                      uint64_t address, uint64_t length, uint32_t access_wanted) noexcept {
  if (key_slot(key) != slot) return {};
  const MrRecord& region = arena.mr(key_index(key));
  if (key == 0 || region.key.load(std::memory_order_seq_cst) != key) return {};
  if (region.pd != pd || (region.access & access_wanted) != access_wanted) return {};
  if (address < region.iova || length > region.length ||
      address - region.iova > region.length - length) {
    return {};
  }
  return {true, region.base + (address - region.iova)};
}

}  // namespace softnic
