// SPDX-License-Identifier: Apache-2.0
//
// A context is two numbers in one word: in its low bits the traffic class plus 1, so that 0 stands
// for none; above them the owner.
#include "plugin/abi/context.h"

#include <atomic>
#include <bit>

#include "common/base/log.h"

namespace beeline::abi {
namespace {

constexpr int kNoWish = CommSettings{}.traffic_class;
constexpr int kMostTrafficClass = 255;
constexpr unsigned kWishBits = 9;
constexpr std::uintptr_t kWishMask = (1U << kWishBits) - 1;

std::atomic<OwnerId> last_owner{kNoOwner};

}  // namespace

int traffic_class_of(int wanted) noexcept {
  if (wanted >= kNoWish && wanted <= kMostTrafficClass) return wanted;
  BL_WARN_ONCE("a communicator requests traffic class %d, which does not exist (0 to 255): ignored",
               wanted);
  return kNoWish;
}

void* new_context(int traffic_class) noexcept {
  const OwnerId owner = last_owner.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto wish = static_cast<std::uintptr_t>(traffic_class - kNoWish);
  return std::bit_cast<void*>(std::uintptr_t{owner} << kWishBits | wish);
}

CommSettings settings_of(const void* context) noexcept {
  const auto bits = std::bit_cast<std::uintptr_t>(context);
  if (bits == 0) return {};
  return {.owner = bits >> kWishBits,
          .traffic_class = static_cast<int>(bits & kWishMask) + kNoWish};
}

}  // namespace beeline::abi
