// SPDX-License-Identifier: Apache-2.0
// The driver's state in this process. Every exported call goes through enter(), which counts it,
// makes it fail if a setting says so, and holds the driver's lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
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
  std::condition_variable context_is_free;  // Context::is_held has become false
  Settings settings;
  bool settings_are_bad = false;
  std::map<std::string_view, std::uint64_t> counts;  // of calls, by their names in cuda.h

  std::atomic<pid_t> owner{0};  // the process that called cuInit; 0: none yet
  std::vector<Gpu> gpus;
  Contexts contexts;
  Memory memory;
  Handles handles;
  std::set<const Stream*> streams;
  std::set<GpuEvent*> events;
  Queues queues;
  std::atomic<void (*)()> at_flush{nullptr};  // softgpu_at_flush

  // Never destroyed, because threads may be in a call when the process ends.
  static Driver& get();

  // Whether this process is a forked child of the one that called cuInit. Called without the lock,
  // which a thread of the parent may have held at the fork.
  bool is_forked() const;
  CuResult start();
  const Gpu* gpu(Ordinal ordinal) const;
  std::uint64_t bar1_of(int gpu) const;

  // Counts the call. Returns the error that it must return instead of being executed, or kSuccess.
  CuResult count_call(Call call);
  bool is_missing(const CallRow& row) const;

  // Waits until all work of the context is done. Meanwhile, other calls in this context wait for
  // this one. The real driver does that in calls that free memory.
  void wait_for_work(Context& context, std::unique_lock<std::mutex>& lock);

 private:
  Driver();
};

enum class Stage : std::uint8_t { kAlways, kInitialized };

// Runs the body as `call`. A body that takes a context gets the current one of the thread, and one
// that takes a lock, too, may call wait_for_work().
template <Stage stage = Stage::kInitialized, class Body>
CuResult enter(Call call, Body&& body) noexcept {
  try {
    Driver& driver = Driver::get();
    if (driver.is_forked()) return CuResult::kNotInitialized;
    std::unique_lock lock(driver.mutex);
    if (const CuResult result = driver.count_call(call); result != CuResult::kSuccess)
      return result;
    if (stage == Stage::kInitialized && driver.owner == 0) return CuResult::kNotInitialized;
    if constexpr (std::is_invocable_v<Body, Driver&>) {
      return body(driver);
    } else {
      Context* const context = Contexts::current();
      if (context == nullptr) return CuResult::kInvalidContext;
      driver.context_is_free.wait(lock, [&] { return !context->is_held; });
      if (!context->is_alive) return CuResult::kContextIsDestroyed;
      if constexpr (std::is_invocable_v<Body, Driver&, Context&>) {
        return body(driver, *context);
      } else {
        return body(driver, *context, lock);
      }
    }
  } catch (...) {  // containers may throw std::bad_alloc
    return CuResult::kOutOfMemory;
  }
}

}  // namespace softnic::gpu

// Defines a second name for an exported function. The names cannot be put in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define SOFTGPU_ALIAS(name, of) extern "C" decltype(of) name __attribute__((alias(#of)))
