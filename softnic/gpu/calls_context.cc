// SPDX-License-Identifier: Apache-2.0
// The driver calls for contexts.
#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

constexpr unsigned kKnownFlags = 0xff;  // scheduling, mapped host memory, core dumps, sync memops
constexpr unsigned kApiVersion = 3020;

void retire(Driver& driver, Context& context) {
  context.is_alive = false;
  driver.memory.free_all_of(&context);
  driver.handles.sweep();
}

template <class Body>
CuResult of_primary(Call call, Ordinal device, Body&& body) noexcept {
  return enter(call, [&](Driver& driver) {
    Context* const context = driver.contexts.primary(device);
    return context == nullptr ? CuResult::kInvalidDevice : body(driver, *context);
  });
}

CuResult create(Call call, Context** out, unsigned flags, Ordinal device) noexcept {
  return enter(call, [&](Driver& driver) {
    if (out == nullptr || (flags & ~kKnownFlags) != 0) return CuResult::kInvalidValue;
    if (driver.gpu(device) == nullptr) return CuResult::kInvalidDevice;
    Context* const context = driver.contexts.make(device, flags);
    if (const CuResult result = Contexts::push(context); result != CuResult::kSuccess) {
      context->is_alive = false;
      return result;
    }
    *out = context;
    return CuResult::kSuccess;
  });
}

// The context that a call passes, or the current one.
Context* named_or_current(const Driver& driver, Context* context) {
  if (context == nullptr) context = Contexts::current();
  return context != nullptr && driver.contexts.is_known(context) && context->is_alive ? context
                                                                                      : nullptr;
}

}  // namespace

extern "C" {

CuResult cuDevicePrimaryCtxRetain(Context** out, Ordinal device) {
  return of_primary(Call::k_cuDevicePrimaryCtxRetain, device, [&](Driver&, Context& context) {
    if (out == nullptr) return CuResult::kInvalidValue;
    ++context.retained;
    context.is_alive = true;
    *out = &context;
    return CuResult::kSuccess;
  });
}

CuResult cuDevicePrimaryCtxRelease_v2(Ordinal device) {
  return of_primary(Call::k_cuDevicePrimaryCtxRelease_v2, device,
                    [&](Driver& driver, Context& context) {
                      if (context.retained == 0) return CuResult::kInvalidContext;
                      if (--context.retained == 0) retire(driver, context);
                      return CuResult::kSuccess;
                    });
}

CuResult cuDevicePrimaryCtxReset_v2(Ordinal device) {
  return of_primary(Call::k_cuDevicePrimaryCtxReset_v2, device,
                    [&](Driver& driver, Context& context) {
                      driver.memory.free_all_of(&context);
                      driver.handles.sweep();
                      return CuResult::kSuccess;
                    });
}

CuResult cuDevicePrimaryCtxSetFlags_v2(Ordinal device, unsigned flags) {
  return of_primary(Call::k_cuDevicePrimaryCtxSetFlags_v2, device, [&](Driver&, Context& context) {
    if ((flags & ~kKnownFlags) != 0) return CuResult::kInvalidValue;
    context.flags = flags;
    return CuResult::kSuccess;
  });
}

CuResult cuDevicePrimaryCtxGetState(Ordinal device, unsigned* flags, int* active) {
  return of_primary(Call::k_cuDevicePrimaryCtxGetState, device, [&](Driver&, Context& context) {
    if (flags == nullptr || active == nullptr) return CuResult::kInvalidValue;
    *flags = context.flags;
    *active = context.is_alive ? 1 : 0;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxCreate_v2(Context** out, unsigned flags, Ordinal device) {
  return create(Call::k_cuCtxCreate_v2, out, flags, device);
}

// Limits on the number of multiprocessors are ignored.
CuResult cuCtxCreate_v3(Context** out, void*, int, unsigned flags, Ordinal device) {
  return create(Call::k_cuCtxCreate_v3, out, flags, device);
}

CuResult cuCtxCreate_v4(Context** out, void*, unsigned flags, Ordinal device) {
  return create(Call::k_cuCtxCreate_v4, out, flags, device);
}

CuResult cuCtxDestroy_v2(Context* context) {
  return enter(Call::k_cuCtxDestroy_v2, [&](Driver& driver) {
    if (context == nullptr || !driver.contexts.is_known(context) || !context->is_alive ||
        context->is_primary)
      return CuResult::kInvalidContext;
    if (Contexts::current() == context) Contexts::pop();
    retire(driver, *context);
    return CuResult::kSuccess;
  });
}

CuResult cuCtxPushCurrent_v2(Context* context) {
  return enter(Call::k_cuCtxPushCurrent_v2, [&](Driver& driver) {
    if (context == nullptr || !driver.contexts.is_known(context)) return CuResult::kInvalidContext;
    return context->is_alive ? Contexts::push(context) : CuResult::kContextIsDestroyed;
  });
}

CuResult cuCtxPopCurrent_v2(Context** out) {
  return enter(Call::k_cuCtxPopCurrent_v2, [&](Driver&) {
    Context* const context = Contexts::pop();
    if (context == nullptr) return CuResult::kInvalidContext;
    if (out != nullptr) *out = context;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxSetCurrent(Context* context) {
  return enter(Call::k_cuCtxSetCurrent, [&](Driver& driver) {
    if (context != nullptr && !driver.contexts.is_known(context)) return CuResult::kInvalidContext;
    if (context != nullptr && !context->is_alive) return CuResult::kContextIsDestroyed;
    return Contexts::set_current(context);
  });
}

CuResult cuCtxGetCurrent(Context** out) {
  return enter(Call::k_cuCtxGetCurrent, [&](Driver&) {
    if (out == nullptr) return CuResult::kInvalidValue;
    *out = Contexts::current();
    return CuResult::kSuccess;
  });
}

CuResult cuCtxGetDevice(Ordinal* device) {
  return enter(Call::k_cuCtxGetDevice, [&](Driver&, Context& context) {
    if (device == nullptr) return CuResult::kInvalidValue;
    *device = context.gpu;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxGetDevice_v2(Ordinal* device, Context* context) {
  return enter(Call::k_cuCtxGetDevice_v2, [&](Driver& driver) {
    const Context* const meant = named_or_current(driver, context);
    if (device == nullptr) return CuResult::kInvalidValue;
    if (meant == nullptr) return CuResult::kInvalidContext;
    *device = meant->gpu;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxGetFlags(unsigned* flags) {
  return enter(Call::k_cuCtxGetFlags, [&](Driver&, Context& context) {
    if (flags == nullptr) return CuResult::kInvalidValue;
    *flags = context.flags;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxGetApiVersion(Context* context, unsigned* version) {
  return enter(Call::k_cuCtxGetApiVersion, [&](Driver& driver) {
    if (version == nullptr) return CuResult::kInvalidValue;
    if (named_or_current(driver, context) == nullptr) return CuResult::kInvalidContext;
    *version = kApiVersion;
    return CuResult::kSuccess;
  });
}

CuResult cuCtxSynchronize() {
  std::vector<Ticket> ends;
  const CuResult result = enter(Call::k_cuCtxSynchronize, [&](Driver& driver, Context& context) {
    ends = driver.queues.ends(context);
    return CuResult::kSuccess;
  });
  for (const Ticket& end : ends) end.wait();
  return result;
}

CuResult cuCtxSynchronize_v2(Context* context) {
  std::vector<Ticket> ends;
  const CuResult result = enter(Call::k_cuCtxSynchronize_v2, [&](Driver& driver) {
    const Context* const meant = named_or_current(driver, context);
    if (meant == nullptr) return CuResult::kInvalidContext;
    ends = driver.queues.ends(*meant);
    return CuResult::kSuccess;
  });
  for (const Ticket& end : ends) end.wait();
  return result;
}

}  // extern "C"

SOFTGPU_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
SOFTGPU_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);
SOFTGPU_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

}  // namespace softnic::gpu
