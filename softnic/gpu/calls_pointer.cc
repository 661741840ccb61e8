// SPDX-License-Identifier: Apache-2.0
// The driver calls for pointer attributes.
#include <cstring>

#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

using Attribute = PointerAttribute;

// The value that cuPointerGetAttributes returns for an attribute that a pointer does not have.
constexpr int kNoDevice = -2;

std::size_t size_of(Attribute attribute) {
  switch (attribute) {
    case Attribute::kMemoryType:
    case Attribute::kDeviceOrdinal: return sizeof(int);
    case Attribute::kSyncMemops:
    case Attribute::kIsManaged:
    case Attribute::kIsLegacyIpcCapable:
    case Attribute::kMapped:
    case Attribute::kIsGpuDirectRdmaCapable: return sizeof(unsigned);
    case Attribute::kAllowedHandleTypes:
    case Attribute::kAccessFlags:
    case Attribute::kContext:
    case Attribute::kDevicePointer:
    case Attribute::kHostPointer:
    case Attribute::kBufferId:
    case Attribute::kRangeStartAddr:
    case Attribute::kRangeSize:
    case Attribute::kMempoolHandle:
    case Attribute::kMappingSize:
    case Attribute::kMappingBaseAddr:
    case Attribute::kMemoryBlockId: return sizeof(std::uint64_t);
  }
  return 0;
}

// The CUDA version that introduced the attribute.
int since(Attribute attribute) {
  const int number = static_cast<int>(attribute);
  if (number >= 18) return 12000;
  if (number >= 16) return 11030;
  if (number >= 15) return 11010;
  return number >= 10 ? 10020 : 4000;
}

// The attributes of one address.
class Pointer {
 public:
  Pointer(Driver& driver, DevicePtr address)
      : driver_(driver), address_(address), range_(driver.memory.find(address)) {
    if (range_ != nullptr) mapped_ = Memory::mapping_at(*range_, address);
  }

  bool is_known() const { return range_ != nullptr; }
  bool is_host() const { return range_->kind == RangeKind::kHost; }
  bool is_reservation() const { return range_->kind == RangeKind::kReservation; }
  bool is_mapped() const { return !is_reservation() || mapped_ != nullptr; }

  bool can_rdma() const {
    if (is_host() || !is_mapped() || !driver_.settings.gdr) return false;
    return !is_reservation() || mapped_->second.physical->prop.gpu_direct_rdma_capable != 0;
  }

  // The value, of which size_of() bytes are used; empty if the pointer does not have the attribute.
  std::optional<std::uint64_t> value(Attribute attribute) const {
    switch (attribute) {
      case Attribute::kContext: return reinterpret_cast<std::uintptr_t>(range_->context);
      case Attribute::kMemoryType:
        if (!is_mapped()) return std::nullopt;
        return is_host() ? kMemoryTypeHost : kMemoryTypeDevice;
      case Attribute::kDevicePointer: return address_;
      case Attribute::kHostPointer:
        if (!is_host()) return std::nullopt;
        return address_;
      case Attribute::kSyncMemops: return range_->sync_memops;
      case Attribute::kBufferId: return range_->id;
      case Attribute::kIsManaged: return false;
      case Attribute::kDeviceOrdinal: return static_cast<std::uint64_t>(gpu());
      case Attribute::kIsLegacyIpcCapable: return range_->kind == RangeKind::kAllocation;
      case Attribute::kRangeStartAddr: return range_->start;
      case Attribute::kRangeSize: return range_->size;
      case Attribute::kMapped: return is_mapped();
      case Attribute::kAllowedHandleTypes:
        return mapped_ == nullptr ? 0 : static_cast<std::uint64_t>(prop().requested_handle_types);
      case Attribute::kIsGpuDirectRdmaCapable: return can_rdma();
      case Attribute::kAccessFlags:
        return static_cast<std::uint64_t>(mapped_ == nullptr ? kAccessReadWrite
                                                             : mapped_->second.access);
      case Attribute::kMempoolHandle: return 0;
      case Attribute::kMappingSize: return mapped_ == nullptr ? range_->size : mapped_->second.size;
      case Attribute::kMappingBaseAddr: return mapped_ == nullptr ? range_->start : mapped_->first;
      case Attribute::kMemoryBlockId:
        return mapped_ == nullptr ? range_->id : mapped_->second.physical->handle;
    }
    return std::nullopt;
  }

 private:
  const MemAllocationProp& prop() const { return mapped_->second.physical->prop; }
  int gpu() const {
    return mapped_ == nullptr ? range_->gpu : mapped_->second.physical->pages->gpu();
  }

  const Driver& driver_;
  DevicePtr address_;
  const Range* range_;
  const std::pair<const std::uintptr_t, Mapping>* mapped_ = nullptr;
};

// Numbers are little-endian, so the first bytes are the value of a narrower type.
void give(void* out, Attribute attribute, std::uint64_t value) {
  std::memcpy(out, &value, size_of(attribute));
}

bool is_attribute(const Driver& driver, Attribute attribute) {
  return size_of(attribute) != 0 && since(attribute) <= driver.settings.driver;
}

}  // namespace

extern "C" {

CuResult cuPointerGetAttribute(void* out, PointerAttribute attribute, DevicePtr address) {
  return enter(Call::k_cuPointerGetAttribute, [&](Driver& driver) {
    if (out == nullptr || !is_attribute(driver, attribute)) return CuResult::kInvalidValue;
    const Pointer pointer(driver, address);
    if (!pointer.is_known()) return CuResult::kInvalidValue;
    const std::optional<std::uint64_t> value = pointer.value(attribute);
    if (!value) return CuResult::kInvalidValue;
    give(out, attribute, *value);
    return CuResult::kSuccess;
  });
}

CuResult cuPointerGetAttributes(unsigned count, const PointerAttribute* attributes, void** out,
                                DevicePtr address) {
  return enter(Call::k_cuPointerGetAttributes, [&](Driver& driver) {
    if (count == 0 || attributes == nullptr || out == nullptr) return CuResult::kInvalidValue;
    for (unsigned i = 0; i < count; ++i)
      if (out[i] == nullptr || !is_attribute(driver, attributes[i])) return CuResult::kInvalidValue;
    const Pointer pointer(driver, address);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t none =
          attributes[i] == Attribute::kDeviceOrdinal ? static_cast<std::uint64_t>(kNoDevice) : 0;
      give(out[i], attributes[i],
           pointer.is_known() ? pointer.value(attributes[i]).value_or(none) : none);
    }
    return CuResult::kSuccess;
  });
}

CuResult cuPointerSetAttribute(const void* value, PointerAttribute attribute, DevicePtr address) {
  return enter(Call::k_cuPointerSetAttribute, [&](Driver& driver) {
    Range* const range = driver.memory.find(address);
    if (value == nullptr || range == nullptr || attribute != Attribute::kSyncMemops)
      return CuResult::kInvalidValue;
    unsigned wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    range->sync_memops = wanted != 0;
    return CuResult::kSuccess;
  });
}

}  // extern "C"
}  // namespace softnic::gpu
