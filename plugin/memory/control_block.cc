// SPDX-License-Identifier: Apache-2.0
#include "plugin/memory/control_block.h"

#include <sys/mman.h>
#include <unistd.h>

namespace beeline {

Result<ControlBlock> ControlBlock::create(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes > SIZE_MAX - page) {
    return fail(Errc::kInvalid, "allocate control memory of an invalid size");
  }
  const std::size_t size = (bytes + page - 1) / page * page;
  void* const data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return fail(Errc::kNoMemory, "allocate control memory", errno);
  // A child does not need a copy, and on old kernels, copy-on-write could give the NIC's pages to
  // the child.
  (void)::madvise(data, size, MADV_DONTFORK);
  return ControlBlock(data, size);
}

Status ControlBlock::attach(const verbs::Api& api, ibv_pd* pd, unsigned access) {
  return attach_rail(regions_.size(), api, pd, access);
}

Status ControlBlock::attach_rail(std::size_t rail, const verbs::Api& api, ibv_pd* pd,
                                 unsigned access) {
  BL_ASSERT(data_ != nullptr && !has_rail(rail), "memory is registered once for each rail");
  verbs::Mr made = BL_TRY(verbs::reg_mr(api, pd, data_, size_, access, verbs::Ordering::kStrict));
  if (regions_.size() <= rail) regions_.resize(rail + 1);
  regions_[rail] = std::move(made);
  return {};
}

// Deregisters before it unmaps, because registrations pin the pages.
void ControlBlock::free() noexcept {
  regions_.clear();
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
}

}  // namespace beeline
