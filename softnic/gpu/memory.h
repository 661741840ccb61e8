// SPDX-License-Identifier: Apache-2.0
// The address space that CPU and GPUs share: allocations, reservations with physical memory mapped
// into them, and host memory that the driver knows. Addresses of device memory are reserved without
// access rights, so a CPU access ends in a SIGSEGV.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softnic/gpu/cuda_abi.h"
#include "softnic/gpu/pages.h"

namespace softnic::gpu {

inline constexpr std::size_t kGranularity = std::size_t{2} << 20;  // of the virtual memory calls
inline constexpr std::size_t kGpuPage = std::size_t{64} << 10;
std::size_t host_page() noexcept;

// Physical memory of cuMemCreate. It exists as long as its handle or a mapping of it.
struct Physical {
  std::shared_ptr<Pages> pages;
  MemAllocationProp prop{};
  AllocationHandle handle = 0;
  unsigned references = 0;  // of the handle, by the program
};

struct Mapping {
  std::shared_ptr<Physical> physical;
  std::size_t offset = 0;
  std::size_t size = 0;
  int access = kAccessNone;
};

enum class RangeKind : std::uint8_t { kAllocation, kReservation, kHost };

struct Range {
  RangeKind kind = RangeKind::kAllocation;
  std::uintptr_t start = 0;
  std::size_t size = 0;      // as requested
  std::size_t reserved = 0;  // of address space
  std::size_t lead = 0;      // of `reserved`, before `start`
  std::uint64_t id = 0;
  Context* context = nullptr;
  int gpu = 0;
  bool sync_memops = false;
  unsigned host_flags = 0;
  bool is_registered = false;                  // host memory that the program had allocated before
  std::shared_ptr<Pages> pages;                // of an allocation
  std::map<std::uintptr_t, Mapping> mappings;  // of a reservation, by address

  std::uintptr_t end() const noexcept { return start + size; }
};

class Memory {
 public:
  // With `packed`, the allocation begins and ends within pages.
  CuResult allocate(std::size_t size, bool packed, Context* context, int gpu, std::uint64_t limit,
                    DevicePtr* out);
  CuResult free(DevicePtr pointer);
  void free_all_of(const Context* context);

  CuResult allocate_host(std::size_t size, unsigned flags, Context* context, int gpu, void** out);
  CuResult free_host(void* pointer);
  CuResult register_host(void* pointer, std::size_t size, unsigned flags, Context* context,
                         int gpu);
  CuResult unregister_host(void* pointer);

  // The range that contains the address, or nullptr.
  Range* find(std::uintptr_t address);
  // The same, or else an allocation with bytes in the page of the address, or nullptr.
  Range* find_in_page(std::uintptr_t address);
  // The mapping of a reservation that contains the address, or nullptr.
  static const std::pair<const std::uintptr_t, Mapping>* mapping_at(const Range& range,
                                                                    std::uintptr_t address);

  // The pieces of pages behind device addresses, in order. Empty if not all of them are device
  // memory.
  std::vector<Piece> pieces(std::uintptr_t address, std::size_t length);
  // The same, but the whole pages in which an allocation begins and ends belong to it: NICs get
  // whole pages.
  std::vector<Piece> pieces_of_pages(std::uintptr_t address, std::size_t length);
  // The same, but empty if the GPU may not access all of them.
  std::vector<Piece> accessible_pieces(std::uintptr_t address, std::size_t length, int access);

  // Physical memory and where it is mapped (vmm.cc).
  CuResult create(std::size_t size, const MemAllocationProp& prop, std::uint64_t limit,
                  AllocationHandle* out);
  CuResult release(AllocationHandle handle);
  CuResult reserve(std::size_t size, std::size_t alignment, DevicePtr wanted, DevicePtr* out);
  CuResult unreserve(DevicePtr start, std::size_t size);
  CuResult map(DevicePtr address, std::size_t size, std::size_t offset, AllocationHandle handle);
  CuResult unmap(DevicePtr address, std::size_t size);
  CuResult set_access(DevicePtr address, std::size_t size, int gpu, int access);
  std::shared_ptr<Physical> physical(AllocationHandle handle) const;
  // Returns the handle of the memory that is mapped at the address, and adds a reference.
  CuResult retain(std::uintptr_t address, AllocationHandle* out);

 private:
  Range& add(Range range);
  bool is_free(std::uintptr_t start, std::size_t size) const;
  static std::vector<Piece> pieces_of(const Range* range, std::uintptr_t address,
                                      std::size_t length, std::size_t unit);
  // The mappings that form a range of addresses; empty if the range contains only a part of one.
  std::vector<std::pair<const std::uintptr_t, Mapping>*> whole_mappings(DevicePtr address,
                                                                        std::size_t size);

  std::map<std::uintptr_t, Range> ranges_;  // by start; they do not overlap
  std::map<AllocationHandle, std::shared_ptr<Physical>> physicals_;
  AllocationHandle next_handle_ = 0x50f70000;
  std::uint64_t next_id_ = 1;
};

// Reserves address space without access rights, aligned to a power of two. Returns 0 if there is
// none.
std::uintptr_t reserve_addresses(std::size_t size, std::size_t alignment);

}  // namespace softnic::gpu
