// SPDX-License-Identifier: Apache-2.0
// Memory's functions for cuMemCreate, cuMemAddressReserve and cuMemMap.
#include <sys/mman.h>

#include <algorithm>

#include "softnic/gpu/memory.h"

namespace softnic::gpu {
namespace {

bool is_whole(std::size_t size) { return size != 0 && size % kGranularity == 0; }

}  // namespace

CuResult Memory::create(std::size_t size, const MemAllocationProp& prop, std::uint64_t limit,
                        AllocationHandle* out) {
  if (!is_whole(size)) return CuResult::kInvalidValue;
  const int gpu = prop.location.id;
  if (size > limit || used_on(gpu) + size > limit) return CuResult::kOutOfMemory;
  auto physical = std::make_shared<Physical>();
  physical->pages = Pages::make(size, gpu);
  if (!physical->pages) return CuResult::kOutOfMemory;
  physical->prop = prop;
  physical->handle = next_handle_++;
  physical->references = 1;
  *out = physical->handle;
  physicals_.emplace(physical->handle, std::move(physical));
  return CuResult::kSuccess;
}

CuResult Memory::release(AllocationHandle handle) {
  const auto entry = physicals_.find(handle);
  if (entry == physicals_.end()) return CuResult::kInvalidValue;
  if (--entry->second->references == 0) physicals_.erase(entry);
  return CuResult::kSuccess;
}

std::shared_ptr<Physical> Memory::physical(AllocationHandle handle) const {
  const auto entry = physicals_.find(handle);
  return entry == physicals_.end() ? nullptr : entry->second;
}

CuResult Memory::retain(std::uintptr_t address, AllocationHandle* out) {
  const Range* const range = find(address);
  const auto* const mapped = range == nullptr ? nullptr : mapping_at(*range, address);
  if (mapped == nullptr) return CuResult::kInvalidValue;
  const std::shared_ptr<Physical>& physical = mapped->second.physical;
  physicals_.emplace(physical->handle, physical);
  ++physical->references;
  *out = physical->handle;
  return CuResult::kSuccess;
}

// `wanted` is ignored; the driver need not grant it either.
CuResult Memory::reserve(std::size_t size, std::size_t alignment, DevicePtr wanted,
                         DevicePtr* out) {
  static_cast<void>(wanted);
  const bool is_power = (alignment & (alignment - 1)) == 0;
  if (!is_whole(size) || !is_power) return CuResult::kInvalidValue;
  Range range;
  range.kind = RangeKind::kReservation;
  range.size = size;
  range.reserved = size;
  range.start = reserve_addresses(size, std::max(alignment, kGranularity));
  if (range.start == 0) return CuResult::kOutOfMemory;
  *out = add(std::move(range)).start;
  return CuResult::kSuccess;
}

CuResult Memory::unreserve(DevicePtr start, std::size_t size) {
  const auto entry = ranges_.find(start);
  if (entry == ranges_.end() || entry->second.kind != RangeKind::kReservation ||
      entry->second.size != size || !entry->second.mappings.empty())
    return CuResult::kInvalidValue;
  ::munmap(reinterpret_cast<void*>(start), size);
  ranges_.erase(entry);
  return CuResult::kSuccess;
}

CuResult Memory::map(DevicePtr address, std::size_t size, std::size_t offset,
                     AllocationHandle handle) {
  const std::shared_ptr<Physical> wanted = physical(handle);
  Range* const range = find(address);
  // As in the driver, only offset 0 is supported.
  if (!wanted || !is_whole(size) || offset != 0 || address % kGranularity != 0 ||
      size > wanted->pages->size())
    return CuResult::kInvalidValue;
  if (range == nullptr || range->kind != RangeKind::kReservation || size > range->end() - address)
    return CuResult::kInvalidValue;
  const auto next = range->mappings.lower_bound(address);
  if (next != range->mappings.end() && next->first < address + size) return CuResult::kInvalidValue;
  if (mapping_at(*range, address) != nullptr) return CuResult::kInvalidValue;
  range->mappings.emplace(address, Mapping{wanted, offset, size, kAccessNone});
  range->gpu = wanted->pages->gpu();
  return CuResult::kSuccess;
}

std::vector<std::pair<const std::uintptr_t, Mapping>*> Memory::whole_mappings(DevicePtr address,
                                                                              std::size_t size) {
  std::vector<std::pair<const std::uintptr_t, Mapping>*> found;
  Range* const range = find(address);
  if (range == nullptr || size == 0 || size > range->end() - address) return {};
  DevicePtr next = address;
  for (auto entry = range->mappings.lower_bound(address);
       entry != range->mappings.end() && next < address + size; ++entry) {
    if (entry->first != next) return {};
    found.push_back(&*entry);
    next += entry->second.size;
  }
  return next == address + size ? found : decltype(found){};
}

CuResult Memory::unmap(DevicePtr address, std::size_t size) {
  const auto whole = whole_mappings(address, size);
  if (whole.empty()) return CuResult::kInvalidValue;
  std::map<std::uintptr_t, Mapping>& mappings = find(address)->mappings;
  mappings.erase(mappings.find(address), mappings.lower_bound(address + size));
  return CuResult::kSuccess;
}

CuResult Memory::set_access(DevicePtr address, std::size_t size, int gpu, int access) {
  const auto whole = whole_mappings(address, size);
  if (whole.empty()) return CuResult::kInvalidValue;
  // Copies check only the rights of the GPU that owns the memory, so those of others are not
  // stored.
  for (auto* const mapped : whole)
    if (mapped->second.physical->pages->gpu() == gpu) mapped->second.access = access;
  return CuResult::kSuccess;
}

}  // namespace softnic::gpu
