// SPDX-License-Identifier: Apache-2.0
//
// makeVDevice of every version that has it: NCCL merges devices into a new one. The versions differ
// in the number of devices for which their struct has room.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "common/base/log.h"
#include "plugin/abi/edge.h"
#include "plugin/runtime/net.h"

namespace beeline::abi {

template <class VDevice>
ncclResult_t make_vdevice(int* dev, VDevice* wanted) noexcept {
  return edge([&]() -> Status {
    if (dev == nullptr || wanted == nullptr) return fail(Errc::kInvalid, "makeVDevice");
    constexpr std::size_t kRoom = std::extent_v<decltype(VDevice::devs)>;
    const auto count = static_cast<std::size_t>(wanted->ndevs);
    if (wanted->ndevs < 0 || count > kRoom) {
      BL_WARN("%d devices cannot be merged: this version of NCCL's interface merges at most %zu",
              wanted->ndevs, kRoom);
      return fail(Errc::kInvalid, "makeVDevice");
    }
    *dev = BL_TRY(net::merge(std::span<const int>(wanted->devs, count)));
    return {};
  });
}

}  // namespace beeline::abi
