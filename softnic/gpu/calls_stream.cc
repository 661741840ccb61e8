// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "softnic/gpu/streams.h"

namespace softnic::gpu {
namespace {

constexpr unsigned kKnownStreamFlags = 1;  // not blocking
constexpr unsigned kEventNoTiming = 2;
constexpr unsigned kKnownEventFlags = 7;  // blocking, no timing, between processes

CuResult make_stream(Call call, Stream** out, unsigned flags) noexcept {
  return enter(call, [&](Driver& driver, Context& context) {
    if (out == nullptr || (flags & ~kKnownStreamFlags) != 0) return CuResult::kInvalidValue;
    auto stream = std::make_unique<Stream>(Stream{context.gpu});
    driver.streams.insert(stream.get());
    *out = stream.release();
    return CuResult::kSuccess;
  });
}

// A call on a stream in which nothing can be left to do.
CuResult of_stream(Call call, const Stream* stream) noexcept {
  return enter(call, [&](Driver& driver, Context&) {
    return is_stream(driver, stream) ? CuResult::kSuccess : CuResult::kInvalidHandle;
  });
}

template <class Body>
CuResult of_event(Call call, GpuEvent* event, Body&& body) noexcept {
  return enter(call, [&](Driver& driver, Context&) {
    return driver.events.contains(event) ? body(driver, *event) : CuResult::kInvalidHandle;
  });
}

CuResult elapsed(Call call, float* milliseconds, const GpuEvent* start, GpuEvent* end) noexcept {
  return of_event(call, end, [&](Driver& driver, const GpuEvent& last) {
    if (milliseconds == nullptr) return CuResult::kInvalidValue;
    if (!driver.events.contains(const_cast<GpuEvent*>(start))) return CuResult::kInvalidHandle;
    if (!start->is_recorded || !last.is_recorded || !start->has_timing || !last.has_timing)
      return CuResult::kInvalidHandle;
    *milliseconds =
        std::chrono::duration<float, std::milli>(last.recorded_at - start->recorded_at).count();
    return CuResult::kSuccess;
  });
}

}  // namespace

bool is_stream(const Driver& driver, const Stream* stream) {
  // 1 and 2 are names for the default stream, of the program and of the thread.
  return reinterpret_cast<uintptr_t>(stream) <= 2 || driver.streams.contains(stream);
}

extern "C" {

CuResult cuStreamCreate(Stream** out, unsigned flags) {
  return make_stream(Call::k_cuStreamCreate, out, flags);
}
CuResult cuStreamCreateWithPriority(Stream** out, unsigned flags, int) {
  return make_stream(Call::k_cuStreamCreateWithPriority, out, flags);
}
CuResult cuStreamDestroy_v2(const Stream* stream) {
  return enter(Call::k_cuStreamDestroy_v2, [&](Driver& driver, Context&) {
    if (driver.streams.erase(stream) == 0) return CuResult::kInvalidHandle;
    delete stream;
    return CuResult::kSuccess;
  });
}
CuResult cuStreamSynchronize(const Stream* stream) {
  return of_stream(Call::k_cuStreamSynchronize, stream);
}
CuResult cuStreamQuery(const Stream* stream) { return of_stream(Call::k_cuStreamQuery, stream); }

CuResult cuStreamWaitEvent(const Stream* stream, GpuEvent* event, unsigned) {
  return of_event(Call::k_cuStreamWaitEvent, event, [&](Driver& driver, const GpuEvent&) {
    return is_stream(driver, stream) ? CuResult::kSuccess : CuResult::kInvalidHandle;
  });
}

CuResult cuEventCreate(GpuEvent** out, unsigned flags) {
  return enter(Call::k_cuEventCreate, [&](Driver& driver, Context&) {
    if (out == nullptr || (flags & ~kKnownEventFlags) != 0) return CuResult::kInvalidValue;
    auto event = std::make_unique<GpuEvent>();
    event->has_timing = (flags & kEventNoTiming) == 0;
    driver.events.insert(event.get());
    *out = event.release();
    return CuResult::kSuccess;
  });
}
CuResult cuEventDestroy_v2(GpuEvent* event) {
  return of_event(Call::k_cuEventDestroy_v2, event, [&](Driver& driver, GpuEvent&) {
    driver.events.erase(event);
    delete event;
    return CuResult::kSuccess;
  });
}
CuResult cuEventRecord(GpuEvent* event, const Stream* stream) {
  return of_event(Call::k_cuEventRecord, event, [&](Driver& driver, GpuEvent& known) {
    if (!is_stream(driver, stream)) return CuResult::kInvalidHandle;
    known.is_recorded = true;
    known.recorded_at = std::chrono::steady_clock::now();
    return CuResult::kSuccess;
  });
}
CuResult cuEventQuery(GpuEvent* event) {
  return of_event(Call::k_cuEventQuery, event,
                  [](Driver&, const GpuEvent&) { return CuResult::kSuccess; });
}
CuResult cuEventSynchronize(GpuEvent* event) {
  return of_event(Call::k_cuEventSynchronize, event,
                  [](Driver&, const GpuEvent&) { return CuResult::kSuccess; });
}
CuResult cuEventElapsedTime(float* milliseconds, GpuEvent* start, GpuEvent* end) {
  return elapsed(Call::k_cuEventElapsedTime, milliseconds, start, end);
}
CuResult cuEventElapsedTime_v2(float* milliseconds, GpuEvent* start, GpuEvent* end) {
  return elapsed(Call::k_cuEventElapsedTime_v2, milliseconds, start, end);
}

}  // extern "C"

SOFTGPU_ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize);
SOFTGPU_ALIAS(cuStreamQuery_ptsz, cuStreamQuery);
SOFTGPU_ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);
SOFTGPU_ALIAS(cuEventRecord_ptsz, cuEventRecord);

}  // namespace softnic::gpu
