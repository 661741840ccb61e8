// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "softnic/gpu/streams.h"

namespace softnic::gpu {
namespace {

constexpr unsigned kKnownStreamFlags = 1;  // not blocking
constexpr unsigned kEventNoTiming = 2;
constexpr unsigned kKnownEventFlags = 7;  // blocking, no timing, between processes

constexpr int kHighestPriority = -5;  // as on today's GPUs; the lowest is 0

CuResult make_stream(Call call, Stream** out, unsigned flags, int priority) noexcept {
  return enter(call, [&](Driver& driver, Context& context) {
    if (out == nullptr || (flags & ~kKnownStreamFlags) != 0) return CuResult::kInvalidValue;
    auto stream = std::make_unique<Stream>(Stream{context.gpu});
    const int count = driver.settings.queues;
    if (count != 0)
      stream->queue = driver.queues.next(context, count, std::clamp(priority, kHighestPriority, 0));
    driver.streams.insert(stream.get());
    *out = stream.release();
    return CuResult::kSuccess;
  });
}

CuResult find_end(Call call, const Stream* stream, Ticket& end) noexcept {
  return enter(call, [&](Driver& driver, Context&) {
    if (!is_stream(driver, stream)) return CuResult::kInvalidHandle;
    end = end_of(driver, stream);
    return CuResult::kSuccess;
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
  // 1 and 2 are the default streams of the program and of the thread.
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 || driver.streams.contains(stream);
}

Ticket end_of(const Driver& driver, const Stream* stream) {
  return driver.streams.contains(stream) ? Ticket{stream->queue, stream->latest} : Ticket{};
}

void in_turn(const Driver& driver, const Stream* stream, std::function<void()> work) {
  if (!driver.streams.contains(stream) || stream->queue == nullptr) return work();
  stream->latest = stream->queue->add(std::move(work));
}

extern "C" {

CuResult cuStreamCreate(Stream** out, unsigned flags) {
  return make_stream(Call::k_cuStreamCreate, out, flags, 0);
}
CuResult cuStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  return make_stream(Call::k_cuStreamCreateWithPriority, out, flags, priority);
}
CuResult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter(Call::k_cuCtxGetStreamPriorityRange, [&](Driver&, Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kHighestPriority;
    return CuResult::kSuccess;
  });
}
CuResult cuStreamDestroy_v2(const Stream* stream) {
  return enter(Call::k_cuStreamDestroy_v2, [&](Driver& driver, Context&) {
    if (driver.streams.erase(stream) == 0) return CuResult::kInvalidHandle;
    delete stream;
    return CuResult::kSuccess;
  });
}
CuResult cuStreamSynchronize(const Stream* stream) {
  Ticket end;
  const CuResult result = find_end(Call::k_cuStreamSynchronize, stream, end);
  end.wait();
  return result;
}
CuResult cuStreamQuery(const Stream* stream) {
  Ticket end;
  const CuResult result = find_end(Call::k_cuStreamQuery, stream, end);
  return result == CuResult::kSuccess && !end.is_done() ? CuResult::kNotReady : result;
}

CuResult cuStreamWaitEvent(const Stream* stream, GpuEvent* event, unsigned) {
  return of_event(Call::k_cuStreamWaitEvent, event, [&](Driver& driver, const GpuEvent& known) {
    if (!is_stream(driver, stream)) return CuResult::kInvalidHandle;
    // Earlier work in the stream's own queue is done first in any case.
    if (!known.ticket.is_done() && known.ticket.queue != end_of(driver, stream).queue)
      in_turn(driver, stream, [ticket = known.ticket] { ticket.wait(); });
    return CuResult::kSuccess;
  });
}

// Without queues, and in the default stream, the function runs before the call returns. It must not
// call the driver.
CuResult cuLaunchHostFunc(const Stream* stream, void (*function)(void*), void* argument) {
  bool at_once = false;
  const CuResult result = enter(Call::k_cuLaunchHostFunc, [&](Driver& driver, Context&) {
    if (!is_stream(driver, stream)) return CuResult::kInvalidHandle;
    if (function == nullptr) return CuResult::kInvalidValue;
    at_once = end_of(driver, stream).queue == nullptr;
    if (!at_once) in_turn(driver, stream, [=] { function(argument); });
    return CuResult::kSuccess;
  });
  if (at_once) function(argument);
  return result;
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
    known.ticket = end_of(driver, stream);
    known.recorded_at = std::chrono::steady_clock::now();
    return CuResult::kSuccess;
  });
}
CuResult cuEventQuery(GpuEvent* event) {
  return of_event(Call::k_cuEventQuery, event, [](Driver&, const GpuEvent& known) {
    return known.ticket.is_done() ? CuResult::kSuccess : CuResult::kNotReady;
  });
}
CuResult cuEventSynchronize(GpuEvent* event) {
  Ticket ticket;
  const CuResult result =
      of_event(Call::k_cuEventSynchronize, event, [&](Driver&, const GpuEvent& known) {
        ticket = known.ticket;
        return CuResult::kSuccess;
      });
  ticket.wait();
  return result;
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
