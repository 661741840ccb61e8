// SPDX-License-Identifier: Apache-2.0
// The driver of this process, and the way into it: every exported call goes through enter(), which
// counts it, lets it fail when it was told to, and holds the one lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <type_traits>
#include <vector>

#include "softnic/gpu/calls.h"
#include "softnic/gpu/contexts.h"
#include "softnic/gpu/gpus.h"
#include "softnic/gpu/handles.h"
#include "softnic/gpu/memory.h"
#include "softnic/gpu/queues.h"
#include "softnic/gpu/settings.h"

namespace softnic::gpu {

struct Driver {
  std::mutex mutex;
  Settings settings;
  bool settings_are_bad = false;
  std::map<std::string_view, std::uint64_t> counts;  // of calls, by cuda.h's name

  std::atomic<pid_t> owner{0};  // who called cuInit; 0: nobody yet
  std::vector<Gpu> gpus;
  Contexts contexts;
  Memory memory;
  Handles handles;
  std::set<const Stream*> streams;
  std::set<GpuEvent*> events;
  Queues queues;

  // Lives until the process ends: threads may be inside when it does.
  static Driver& get();

  // Whether this process came out of a fork of the one that called cuInit. To be asked without the
  // lock: in such a process nobody may be left to release it.
  bool is_forked() const;
  CuResult start();
  const Gpu* gpu(Ordinal ordinal) const;
  std::uint64_t bar1_of(int gpu) const;

  // What is to come instead of the call, if anything.
  CuResult count_call(Call call);
  bool is_missing(const CallRow& row) const;

 private:
  Driver();
};

enum class Stage : std::uint8_t { kAlways, kInitialized };

// Runs the body as `call`. A body that takes a context has the thread's current one.
template <Stage stage = Stage::kInitialized, class Body>
CuResult enter(Call call, Body&& body) noexcept {
  try {
    Driver& driver = Driver::get();
    if (driver.is_forked()) return CuResult::kNotInitialized;
    const std::lock_guard lock(driver.mutex);
    if (const CuResult result = driver.count_call(call); result != CuResult::kSuccess)
      return result;
    if (stage == Stage::kInitialized && driver.owner == 0) return CuResult::kNotInitialized;
    if constexpr (std::is_invocable_v<Body, Driver&>) {
      return body(driver);
    } else {
      Context* const context = Contexts::current();
      if (context == nullptr) return CuResult::kInvalidContext;
      if (!context->is_alive) return CuResult::kContextIsDestroyed;
      return body(driver, *context);
    }
  } catch (...) {  // ours do not throw; memory may run out in containers
    return CuResult::kOutOfMemory;
  }
}

}  // namespace softnic::gpu

// A second name for an exported function. Neither name can stand in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define SOFTGPU_ALIAS(name, of) extern "C" decltype(of) name __attribute__((alias(#of)))
