// SPDX-License-Identifier: Apache-2.0
// The driver calls for copies and fills. All are done when the call returns, including those with a
// stream unless streams share queues. Wrong addresses are reported by the call itself.
#include <cstring>
#include <utility>

#include "softnic/gpu/copy.h"
#include "softnic/gpu/driver.h"
#include "softnic/gpu/streams.h"

namespace softnic::gpu {
namespace {

enum class Side : std::uint8_t { kHost, kDevice, kEither };

// Source or destination of a copy.
struct Place {
  std::uintptr_t address = 0;
  std::vector<Piece> pieces;  // empty: host memory
  bool is_good = false;
};

Place find_place(Driver& driver, std::uintptr_t address, std::size_t length, Side side,
                 int access) {
  const Range* const range = driver.memory.find(address);
  const bool is_device = range != nullptr && range->kind != RangeKind::kHost;
  if (!is_device) return {address, {}, side != Side::kDevice};
  Place place{address, driver.memory.accessible_pieces(address, length, access), false};
  place.is_good = side != Side::kHost && !place.pieces.empty();
  return place;
}

bool move_bytes(const Place& to, const Place& from, std::size_t length) {
  void* const target = reinterpret_cast<void*>(to.address);
  const void* const source = reinterpret_cast<const void*>(from.address);
  if (to.pieces.empty() && from.pieces.empty()) return copy_on_host(target, source, length);
  if (to.pieces.empty()) return copy_out(target, from.pieces);
  if (from.pieces.empty()) return copy_in(to.pieces, source);
  copy_across(to.pieces, from.pieces);
  return true;
}

struct Copy {
  std::uintptr_t to;
  Side to_side;
  std::uintptr_t from;
  Side from_side;
  std::size_t length;
  const Stream* stream = nullptr;
};

CuResult copy(Call call, const Copy& copy) noexcept {
  return enter(call, [&](Driver& driver, Context&) {
    if (!is_stream(driver, copy.stream)) return CuResult::kInvalidHandle;
    if (copy.length == 0) return CuResult::kSuccess;
    Place to = find_place(driver, copy.to, copy.length, copy.to_side, kAccessReadWrite);
    Place from = find_place(driver, copy.from, copy.length, copy.from_side, kAccessRead);
    if (!to.is_good || !from.is_good) return CuResult::kInvalidValue;
    if (end_of(driver, copy.stream).queue == nullptr)
      return move_bytes(to, from, copy.length) ? CuResult::kSuccess : CuResult::kInvalidValue;
    in_turn(driver, copy.stream,
            [to = std::move(to), from = std::move(from), length = copy.length] {
              (void)move_bytes(to, from, length);
            });
    return CuResult::kSuccess;
  });
}

template <class Unit>
void fill_piece(const Piece& piece, Unit value) {
  std::byte* const bytes = piece.bytes();
  for (std::size_t i = 0; i < piece.length; i += sizeof value)
    std::memcpy(bytes + i, &value, sizeof value);
}

template <class Unit>
CuResult fill(Call call, DevicePtr to, Unit value, std::size_t count,
              const Stream* stream = nullptr) noexcept {
  return enter(call, [&](Driver& driver, Context&) {
    if (!is_stream(driver, stream)) return CuResult::kInvalidHandle;
    if (count == 0) return CuResult::kSuccess;
    if (to % sizeof value != 0 || count > SIZE_MAX / sizeof value) return CuResult::kInvalidValue;
    const std::vector<Piece> pieces =
        driver.memory.accessible_pieces(to, count * sizeof value, kAccessReadWrite);
    if (pieces.empty()) return CuResult::kInvalidValue;
    in_turn(driver, stream, [pieces, value] {
      for (const Piece& piece : pieces) fill_piece(piece, value);
    });
    return CuResult::kSuccess;
  });
}

}  // namespace

extern "C" {

CuResult cuMemcpy(DevicePtr to, DevicePtr from, std::size_t length) {
  return copy(Call::k_cuMemcpy, {to, Side::kEither, from, Side::kEither, length});
}
CuResult cuMemcpyAsync(DevicePtr to, DevicePtr from, std::size_t length, const Stream* stream) {
  return copy(Call::k_cuMemcpyAsync, {to, Side::kEither, from, Side::kEither, length, stream});
}

CuResult cuMemcpyHtoD_v2(DevicePtr to, const void* from, std::size_t length) {
  return copy(Call::k_cuMemcpyHtoD_v2, {to, Side::kDevice, address_of(from), Side::kHost, length});
}
CuResult cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, std::size_t length,
                              const Stream* stream) {
  return copy(Call::k_cuMemcpyHtoDAsync_v2,
              {to, Side::kDevice, address_of(from), Side::kHost, length, stream});
}

CuResult cuMemcpyDtoH_v2(void* to, DevicePtr from, std::size_t length) {
  return copy(Call::k_cuMemcpyDtoH_v2, {address_of(to), Side::kHost, from, Side::kDevice, length});
}
CuResult cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, std::size_t length, const Stream* stream) {
  return copy(Call::k_cuMemcpyDtoHAsync_v2,
              {address_of(to), Side::kHost, from, Side::kDevice, length, stream});
}

CuResult cuMemcpyDtoD_v2(DevicePtr to, DevicePtr from, std::size_t length) {
  return copy(Call::k_cuMemcpyDtoD_v2, {to, Side::kDevice, from, Side::kDevice, length});
}
CuResult cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, std::size_t length,
                              const Stream* stream) {
  return copy(Call::k_cuMemcpyDtoDAsync_v2,
              {to, Side::kDevice, from, Side::kDevice, length, stream});
}

CuResult cuMemsetD8_v2(DevicePtr to, unsigned char value, std::size_t count) {
  return fill(Call::k_cuMemsetD8_v2, to, value, count);
}
CuResult cuMemsetD16_v2(DevicePtr to, unsigned short value, std::size_t count) {
  return fill(Call::k_cuMemsetD16_v2, to, value, count);
}
CuResult cuMemsetD32_v2(DevicePtr to, unsigned value, std::size_t count) {
  return fill(Call::k_cuMemsetD32_v2, to, value, count);
}
CuResult cuMemsetD8Async(DevicePtr to, unsigned char value, std::size_t count,
                         const Stream* stream) {
  return fill(Call::k_cuMemsetD8Async, to, value, count, stream);
}
CuResult cuMemsetD16Async(DevicePtr to, unsigned short value, std::size_t count,
                          const Stream* stream) {
  return fill(Call::k_cuMemsetD16Async, to, value, count, stream);
}
CuResult cuMemsetD32Async(DevicePtr to, unsigned value, std::size_t count, const Stream* stream) {
  return fill(Call::k_cuMemsetD32Async, to, value, count, stream);
}

}  // extern "C"

SOFTGPU_ALIAS(cuMemcpy_ptds, cuMemcpy);
SOFTGPU_ALIAS(cuMemcpyAsync_ptsz, cuMemcpyAsync);
SOFTGPU_ALIAS(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);
SOFTGPU_ALIAS(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2);
SOFTGPU_ALIAS(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);
SOFTGPU_ALIAS(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2);
SOFTGPU_ALIAS(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);
SOFTGPU_ALIAS(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2);
SOFTGPU_ALIAS(cuMemsetD8_v2_ptds, cuMemsetD8_v2);
SOFTGPU_ALIAS(cuMemsetD16_v2_ptds, cuMemsetD16_v2);
SOFTGPU_ALIAS(cuMemsetD32_v2_ptds, cuMemsetD32_v2);
SOFTGPU_ALIAS(cuMemsetD8Async_ptsz, cuMemsetD8Async);
SOFTGPU_ALIAS(cuMemsetD16Async_ptsz, cuMemsetD16Async);
SOFTGPU_ALIAS(cuMemsetD32Async_ptsz, cuMemsetD32Async);

}  // namespace softnic::gpu
