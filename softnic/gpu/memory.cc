// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

namespace softnic::gpu {
namespace {

// Where an allocation begins in its page if it is packed, as behind a small one.
constexpr std::size_t kPackedAt = 512;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Whether all pages of the range are mapped; they need not be present in memory.
bool is_mapped(std::uintptr_t start, std::size_t size) {
  const std::uintptr_t first = start / host_page() * host_page();
  const std::size_t length = round_up(start + size - first, host_page());
  std::vector<unsigned char> present(length / host_page());
  return ::mincore(at(first), length, present.data()) == 0;
}

}  // namespace

std::size_t host_page() noexcept {
  static const auto kSize = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return kSize;
}

std::uintptr_t reserve_addresses(std::size_t size, std::size_t alignment) {
  if (size + alignment < size) return 0;
  const std::size_t whole = size + alignment;
  void* const memory =
      ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = round_up(start, alignment);
  if (aligned > start) ::munmap(at(start), aligned - start);
  if (aligned + size < start + whole) ::munmap(at(aligned + size), start + whole - aligned - size);
  return aligned;
}

Range& Memory::add(Range range) {
  range.id = next_id_++;
  const std::uintptr_t start = range.start;
  return ranges_.emplace(start, std::move(range)).first->second;
}

CuResult Memory::allocate(std::size_t size, bool packed, Context* context, int gpu,
                          std::uint64_t limit, DevicePtr* out) {
  if (size == 0 || out == nullptr) return CuResult::kInvalidValue;
  Range range;
  range.size = size;
  range.lead = packed ? kPackedAt : 0;
  range.reserved = round_up(range.lead + size, kGpuPage);
  if (size > limit || used_on(gpu) + range.reserved > limit) return CuResult::kOutOfMemory;
  range.context = context;
  range.gpu = gpu;
  range.pages = Pages::make(range.reserved, gpu);
  if (!range.pages) return CuResult::kOutOfMemory;
  const std::uintptr_t base = reserve_addresses(range.reserved, kGpuPage);
  if (base == 0) return CuResult::kOutOfMemory;
  range.start = base + range.lead;
  *out = add(std::move(range)).start;
  return CuResult::kSuccess;
}

CuResult Memory::free(DevicePtr pointer) {
  const auto entry = ranges_.find(pointer);
  if (entry == ranges_.end() || entry->second.kind != RangeKind::kAllocation)
    return CuResult::kInvalidValue;
  ::munmap(at(entry->first - entry->second.lead), entry->second.reserved);
  ranges_.erase(entry);
  return CuResult::kSuccess;
}

void Memory::free_all_of(const Context* context) {
  for (auto entry = ranges_.begin(); entry != ranges_.end();) {
    const Range& range = entry->second;
    const bool goes = range.context == context && range.kind != RangeKind::kReservation;
    if (goes && !range.is_registered) ::munmap(at(range.start - range.lead), range.reserved);
    entry = goes ? ranges_.erase(entry) : std::next(entry);
  }
}

CuResult Memory::allocate_host(std::size_t size, unsigned flags, Context* context, int gpu,
                               void** out) {
  if (size == 0 || out == nullptr || (flags & ~kHostAllocKnownFlags) != 0)
    return CuResult::kInvalidValue;
  Range range;
  range.kind = RangeKind::kHost;
  range.size = size;
  range.reserved = round_up(size, host_page());
  range.context = context;
  range.gpu = gpu;
  range.host_flags = flags;
  if (range.reserved < size) return CuResult::kOutOfMemory;
  void* const memory =
      ::mmap(nullptr, range.reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CuResult::kOutOfMemory;
  range.start = reinterpret_cast<std::uintptr_t>(memory);
  add(std::move(range));
  *out = memory;
  return CuResult::kSuccess;
}

CuResult Memory::free_host(void* pointer) {
  const auto entry = ranges_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (entry == ranges_.end() || entry->second.kind != RangeKind::kHost ||
      entry->second.is_registered)
    return CuResult::kInvalidValue;
  ::munmap(pointer, entry->second.reserved);
  ranges_.erase(entry);
  return CuResult::kSuccess;
}

CuResult Memory::register_host(void* pointer, std::size_t size, unsigned flags, Context* context,
                               int gpu) {
  const auto start = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr || size == 0 || start + size < start ||
      (flags & ~kHostRegisterKnownFlags) != 0)
    return CuResult::kInvalidValue;
  if (!is_free(start, size)) return CuResult::kHostMemoryAlreadyRegistered;
  if (!is_mapped(start, size)) return CuResult::kInvalidValue;
  Range range;
  range.kind = RangeKind::kHost;
  range.start = start;
  range.size = size;
  range.context = context;
  range.gpu = gpu;
  range.host_flags = flags;
  range.is_registered = true;
  add(std::move(range));
  return CuResult::kSuccess;
}

CuResult Memory::unregister_host(void* pointer) {
  const auto entry = ranges_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (entry == ranges_.end() || !entry->second.is_registered)
    return CuResult::kHostMemoryNotRegistered;
  ranges_.erase(entry);
  return CuResult::kSuccess;
}

Range* Memory::find(std::uintptr_t address) {
  auto entry = ranges_.upper_bound(address);
  if (entry == ranges_.begin()) return nullptr;
  --entry;
  return address < entry->second.end() ? &entry->second : nullptr;
}

Range* Memory::find_in_page(std::uintptr_t address) {
  if (Range* const range = find(address)) return range;
  const std::uintptr_t page = address / host_page() * host_page();
  const auto entry = ranges_.lower_bound(page + host_page());
  if (entry == ranges_.begin()) return nullptr;
  Range& range = std::prev(entry)->second;
  return range.kind == RangeKind::kAllocation && range.end() > page ? &range : nullptr;
}

bool Memory::is_free(std::uintptr_t start, std::size_t size) const {
  const auto next = ranges_.lower_bound(start);
  if (next != ranges_.end() && next->first < start + size) return false;
  return next == ranges_.begin() || std::prev(next)->second.end() <= start;
}

const std::pair<const std::uintptr_t, Mapping>* Memory::mapping_at(const Range& range,
                                                                   std::uintptr_t address) {
  auto entry = range.mappings.upper_bound(address);
  if (entry == range.mappings.begin()) return nullptr;
  --entry;
  return address < entry->first + entry->second.size ? &*entry : nullptr;
}

std::vector<Piece> Memory::pieces(std::uintptr_t address, std::size_t length) {
  return pieces_of(find(address), address, length, 1);
}

std::vector<Piece> Memory::pieces_of_pages(std::uintptr_t address, std::size_t length) {
  return pieces_of(find_in_page(address), address, length, host_page());
}

std::vector<Piece> Memory::pieces_of(const Range* range, std::uintptr_t address, std::size_t length,
                                     std::size_t unit) {
  if (range == nullptr || range->kind == RangeKind::kHost || address + length < address) return {};
  if (range->kind == RangeKind::kAllocation) {
    const std::size_t offset = address - (range->start - range->lead);
    if (length > round_up(range->lead + range->size, unit) - offset) return {};
    return {{range->pages, offset, length}};
  }
  std::vector<Piece> found;
  for (std::size_t done = 0; done < length;) {
    const auto* const mapped = mapping_at(*range, address + done);
    if (mapped == nullptr) return {};
    const Mapping& mapping = mapped->second;
    const std::size_t inside = address + done - mapped->first;
    const std::size_t here = std::min(length - done, mapping.size - inside);
    found.push_back({mapping.physical->pages, mapping.offset + inside, here});
    done += here;
  }
  return found;
}

std::vector<Piece> Memory::accessible_pieces(std::uintptr_t address, std::size_t length,
                                             int access) {
  const Range* const range = find(address);
  if (range != nullptr && range->kind == RangeKind::kReservation)
    for (const auto& [start, mapping] : range->mappings)
      if (start < address + length && start + mapping.size > address &&
          (mapping.access & access) != access)
        return {};
  return pieces(address, length);
}

}  // namespace softnic::gpu
