// SPDX-License-Identifier: Apache-2.0
//
// If the device has no thread domain, its provider uses locks, so that is not an error.
#include "plugin/device/thread_domain.h"

#include "common/base/log.h"
#include "plugin/device/device.h"
#include "plugin/verbs/create.h"

namespace beeline {

ThreadDomain ThreadDomain::make(DeviceContext& context, ibv_pd* pd, int most) {
  ThreadDomain made;
  const bool has_place = context.thread_domains().fetch_add(1, std::memory_order_relaxed) < most;
  made.place_.reset(&context.thread_domains());  // leaves it again where there is none
  if (!has_place) return {};
  const auto fill = [&]() -> Status {
    made.td_ = BL_TRY(verbs::alloc_td(context.api(), context.raw()));
    made.pd_ = BL_TRY(verbs::alloc_parent_domain(context.api(), pd, made.td_.get()));
    return {};
  };
  const Status filled = fill();
  if (filled) return made;
  if (filled.error().code == Errc::kUnsupported) {
    BL_INFO_ONCE(kLogNet,
                 "device %s has no thread domains, like most devices: its provider uses a lock for "
                 "each queue",
                 context.ibdev().c_str());
  } else {
    BL_INFO_ONCE(
        kLogNet,
        "device %s: its provider uses a lock for each queue, since it refused a thread domain: %s",
        context.ibdev().c_str(), describe(filled.error()).c_str());
  }
  return {};
}

}  // namespace beeline
