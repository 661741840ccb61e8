// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/driver.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace softnic::gpu {
namespace {

const char* environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Driver& Driver::get() {
  static Driver& driver = *new Driver;
  return driver;
}

Driver::Driver() {
  const beeline::Outcome<Settings> read = Settings::parse(environment("SOFTGPU"));
  if (read) {
    settings = *read;
  } else {
    settings_are_bad = true;
    std::fprintf(stderr, "softgpu: SOFTGPU: %s\n", read.error().text.c_str());
  }
}

bool Driver::is_forked() const {
  const pid_t initialized_by = owner.load(std::memory_order_relaxed);
  return initialized_by != 0 && initialized_by != ::getpid();
}

CuResult Driver::start() {
  if (settings_are_bad) return CuResult::kSystemNotReady;
  if (owner != 0) return CuResult::kSuccess;
  gpus =
      find_gpus(environment("BEELINE_SYSFS_ROOT"), settings, std::getenv("CUDA_VISIBLE_DEVICES"));
  if (gpus.empty()) return CuResult::kNoDevice;
  contexts.set_up(gpus.size());
  owner = ::getpid();
  return CuResult::kSuccess;
}

const Gpu* Driver::gpu(Ordinal ordinal) const {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= gpus.size()) return nullptr;
  return &gpus[static_cast<std::size_t>(ordinal)];
}

std::uint64_t Driver::bar1_of(int gpu) const {
  if (settings.bar1) return *settings.bar1;
  const std::uint64_t of_tree = gpus[static_cast<std::size_t>(gpu)].bar1;
  return of_tree == 0 ? settings.memory : of_tree;
}

bool Driver::is_missing(const CallRow& row) const {
  return row.since > settings.driver || settings.missing.contains(row.base);
}

CuResult Driver::count_call(Call call) {
  const CallRow& row = row_of(call);
  const std::uint64_t turn = ++counts[row.base];
  if (is_missing(row)) return CuResult::kNotSupported;
  const auto failures = settings.failures.find(row.base);
  if (failures == settings.failures.end()) return CuResult::kSuccess;
  const auto failure = failures->second.find(turn);
  return failure == failures->second.end() ? CuResult::kSuccess
                                           : static_cast<CuResult>(failure->second);
}

void Driver::wait_for_work(Context& context, std::unique_lock<std::mutex>& lock) {
  context.is_held = true;
  const std::vector<Ticket> ends = queues.ends(context);
  lock.unlock();
  for (const Ticket& end : ends) end.wait();
  lock.lock();
  context.is_held = false;
  context_is_free.notify_all();
}

}  // namespace softnic::gpu
