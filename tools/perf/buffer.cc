// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/buffer.h"

#include <cstring>

namespace beeline::perf {

// Drivers place small allocations anywhere in a page; buffers of NCCL begin at a page.
NetResult<Buffer> Buffer::make(const RankMemory& memory, size_t size) {
  Buffer buffer(memory, size);
  if (memory.gpu() == nullptr) return buffer;
  const gpu::DevicePtr page = host_page();
  const size_t whole = buffer.stage_.whole_size();
  buffer.allocation_ = BL_TRY(memory.gpu()->allocate(whole + page));
  buffer.guarded_ = (buffer.allocation_ + page - 1) / page * page;
  BL_TRY(buffer.copy_in(buffer.stage_.whole(), whole));
  return buffer;
}

Buffer::~Buffer() {
  const bool is_registered = lease_.use_count() > 1;
  if (is_registered) {
    stage_.keep();
  } else if (allocation_ != 0) {
    memory_->gpu()->free(allocation_);
  }
}

NetResult<void> Buffer::copy_in(const std::uint8_t* staged, size_t bytes) const noexcept {
  if (bytes == 0) return {};
  return memory_->gpu()->copy_in(pointer(staged), staged, bytes);
}

NetResult<void> Buffer::copy_out(std::uint8_t* staged, size_t bytes) const noexcept {
  if (bytes == 0) return {};
  return memory_->gpu()->copy_out(staged, pointer(staged), bytes);
}

NetResult<void> Buffer::poison(Piece piece) const noexcept {
  std::memset(stage(piece.at), kPoison, piece.size);
  return store(piece);
}

NetResult<size_t> Buffer::broken_guards() const noexcept {
  if (is_staged()) {
    std::uint8_t* const behind = stage_.data() + stage_.size();
    BL_TRY(copy_out(stage_.whole(), static_cast<size_t>(stage_.data() - stage_.whole())));
    BL_TRY(copy_out(behind, static_cast<size_t>(stage_.whole() + stage_.whole_size() - behind)));
  }
  return stage_.broken_guards();
}

Outcome<UniqueFd> Buffer::export_pages(size_t bytes) const {
  const size_t page = host_page();
  return memory_->gpu()->export_pages(address(), (bytes + page - 1) / page * page);
}

}  // namespace beeline::perf
