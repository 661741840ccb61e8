// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/page_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "common/check/assert.h"

namespace beeline {
namespace {

Status reserve(int fd, size_t offset, size_t length) noexcept {
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(length));
  }
  if (error != 0) return fail(Errc::kSystem, "reserve memory for the statistics page", error);
  return {};
}

// If a file exceeds the user's limit (ulimit -f), the kernel sends a signal that ends the process.
bool can_grow_to(size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

Status prepare(int fd, std::uint32_t slot_count) noexcept {
  if (!can_grow_to(stats_page_bytes(slot_count))) {
    return fail(Errc::kSystem, "size the statistics page", EFBIG);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return fail_errno("lock the statistics page");
  if (::ftruncate(fd, static_cast<off_t>(stats_page_bytes(slot_count))) != 0) {
    return fail_errno("size the statistics page");
  }
  return reserve(fd, 0, BEELINE_STATS_HEADER_BYTES);
}

}  // namespace

Result<PageMemory> PageMemory::create_file(const std::string& path, std::uint32_t slot_count) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("create the statistics page");
  const Status prepared = prepare(fd.get(), slot_count);
  if (!prepared) {
    ::unlink(path.c_str());
    return fail(prepared.error());
  }
  Result<PageMemory> memory = map(std::move(fd), slot_count, path);
  if (!memory) ::unlink(path.c_str());
  return memory;
}

Result<PageMemory> PageMemory::create_private(std::uint32_t slot_count) {
  return map(UniqueFd(), slot_count, {});
}

Result<PageMemory> PageMemory::map(UniqueFd fd, std::uint32_t slot_count, const std::string& path) {
  const int kind = fd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* start =
      ::mmap(nullptr, stats_page_bytes(slot_count), PROT_READ | PROT_WRITE, kind, fd.get(), 0);
  if (start == MAP_FAILED) return fail_errno("map the statistics page");
  return PageMemory(std::move(fd), start, slot_count, path);
}

PageMemory::PageMemory(UniqueFd fd, void* start, std::uint32_t slot_count,
                       std::string path) noexcept
    : fd_(std::move(fd)),
      start_(start),
      slot_count_(slot_count),
      path_(std::move(path)),
      owner_(::getpid()) {}

PageMemory::PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(start_, other.start_);
  std::swap(slot_count_, other.slot_count_);
  std::swap(path_, other.path_);
  std::swap(owner_, other.owner_);
  return *this;
}

PageMemory::~PageMemory() {
  if (start_ == nullptr) return;
  ::munmap(start_, stats_page_bytes(slot_count_));
  remove_file();
}

void PageMemory::remove_file() noexcept {
  if (fd_ && owner_ == ::getpid()) ::unlink(path_.c_str());
}

Status PageMemory::reserve_slot(std::uint32_t index) const noexcept {
  if (!fd_) return {};
  return reserve(fd_.get(), stats_page_bytes(index), sizeof(beeline_stats_slot));
}

beeline_stats_header* PageMemory::header() const noexcept {
  return static_cast<beeline_stats_header*>(start_);
}

beeline_stats_slot* PageMemory::slot(std::uint32_t index) const noexcept {
  BL_ASSERT(index < slot_count_, "the page has such a slot");
  auto* bytes = static_cast<std::byte*>(start_) + BEELINE_STATS_HEADER_BYTES;
  return reinterpret_cast<beeline_stats_slot*>(bytes) + index;
}

}  // namespace beeline
