// SPDX-License-Identifier: Apache-2.0
// The functions of softgpu.h, for NICs and tests.
#include "softnic/gpu/softgpu.h"

#include <cerrno>

#include "softnic/gpu/copy.h"
#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

// Runs body(driver) under the lock. Returns `otherwise` in a forked child.
template <class Value, class Body>
Value ask(Value otherwise, Body&& body) noexcept {
  try {
    Driver& driver = Driver::get();
    if (driver.is_forked()) return otherwise;
    const std::lock_guard lock(driver.mutex);
    return body(driver);
  } catch (...) {
    return otherwise;
  }
}

// Pins a piece and returns its descriptor and the offset in it. The result is an errno.
int pin(Driver& driver, const Piece& piece, int* pages_fd, std::uint64_t* offset) {
  const int gpu = piece.pages->gpu();
  if (driver.handles.pinned_on(gpu) + piece.length > driver.bar1_of(gpu)) return ENOMEM;
  const beeline::Result<int, int> fd = driver.handles.pin(piece);
  if (!fd) return fd.error();
  *pages_fd = *fd;
  *offset = piece.offset;
  return 0;
}

// Whether a peer-memory module can get these pages.
bool is_made_for_rdma(Driver& driver, std::uintptr_t address) {
  const Range* const range = driver.memory.find_in_page(address);
  if (range == nullptr) return false;
  const auto* const mapped = Memory::mapping_at(*range, address);
  return mapped == nullptr || mapped->second.physical->prop.gpu_direct_rdma_capable != 0;
}

thread_local char t_complaint[256];

const char* apply(Driver& driver, const char* text) {
  const beeline::Outcome<Settings> read = Settings::parse(text);
  const bool changes_gpus = read && driver.owner != 0 && read->gpus != driver.settings.gpus;
  if (read && !changes_gpus) {
    driver.settings = *read;
    driver.settings_are_bad = false;
    driver.counts.clear();
    return nullptr;
  }
  const char* const why =
      changes_gpus ? "gpus: cannot change after cuInit" : read.error().text.c_str();
  std::snprintf(t_complaint, sizeof t_complaint, "%s", why);
  return t_complaint;
}

}  // namespace

extern "C" {

int softgpu_dmabuf(int fd, int* pages_fd, std::uint64_t* offset, std::uint64_t* length) {
  return ask(ENOENT, [&](Driver& driver) {
    const Piece* const found = driver.handles.find(fd);
    if (found == nullptr) return int{ENOENT};
    const Piece piece = *found;  // a copy, because pin() may remove handles
    if (!driver.settings.mappable) return int{ENOSYS};
    *length = piece.length;
    return pin(driver, piece, pages_fd, offset);
  });
}

int softgpu_peermem(const void* address, std::size_t length, int* pages_fd, std::uint64_t* offset) {
  return ask(EFAULT, [&](Driver& driver) {
    const std::vector<Piece> pieces = driver.memory.pieces_of_pages(address_of(address), length);
    if (pieces.size() != 1) return int{EFAULT};
    if (!driver.settings.peermem || !driver.settings.gdr) return int{EOPNOTSUPP};
    if (!is_made_for_rdma(driver, address_of(address))) return int{EFAULT};
    if (!driver.settings.mappable) return int{ENOSYS};
    return pin(driver, pieces.front(), pages_fd, offset);
  });
}

void softgpu_at_flush(void (*reveal)(void)) { Driver::get().at_flush.store(reveal); }

const char* softgpu_set(const char* settings) {
  return ask<const char*>("no driver in a forked process", [&](Driver& driver) {
    return apply(driver, settings == nullptr ? "" : settings);
  });
}

int softgpu_read(const void* from_device, void* to, std::size_t length) {
  return ask(EFAULT, [&](Driver& driver) {
    const std::vector<Piece> pieces = driver.memory.pieces(address_of(from_device), length);
    return !pieces.empty() && copy_out(to, pieces) ? 0 : EFAULT;
  });
}

int softgpu_write(void* to_device, const void* from, std::size_t length) {
  return ask(EFAULT, [&](Driver& driver) {
    const std::vector<Piece> pieces = driver.memory.pieces(address_of(to_device), length);
    return !pieces.empty() && copy_in(pieces, from) ? 0 : EFAULT;
  });
}

std::uint64_t softgpu_calls(const char* name) {
  return ask(std::uint64_t{0}, [&](Driver& driver) {
    const auto count = driver.counts.find(name);
    return count == driver.counts.end() ? 0 : count->second;
  });
}

std::uint64_t softgpu_pinned(void) {
  return ask(std::uint64_t{0}, [](Driver& driver) { return driver.handles.pinned(); });
}

std::uint64_t softgpu_open_handles(void) {
  return ask(std::uint64_t{0}, [](Driver& driver) { return driver.handles.open(); });
}

}  // extern "C"
}  // namespace softnic::gpu
