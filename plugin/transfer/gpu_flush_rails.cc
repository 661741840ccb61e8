// SPDX-License-Identifier: Apache-2.0
//
// Makes the queue pairs for flushes. Each rail has one, which is connected to itself. It is made
// when memory that needs flushes is first registered with the rail.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "plugin/transfer/gpu_flush.h"

namespace beeline {
namespace {

std::size_t count_rails(std::span<const Path> paths) noexcept {
  std::size_t count = 0;
  for (const Path& path : paths) count = std::max(count, std::size_t{path.rail} + 1);
  return count;
}

}  // namespace

Outcome<Loopback> GpuFlush::make_loopback(PathResources& resources) const {
  const Device& device = *resources.device;
  ibv_pd* const pd = resources.domain ? resources.domain.pd() : BL_TRY(device.context->pd());
  return Loopback::make(device, {.pd = pd,
                                 .cq = resources.queues.cq.get(),
                                 .depth = Flusher::kDepth,
                                 .gid = gid_,
                                 .pkey = pkey_});
}

// If no queue pair can be connected to the port itself, the CUDA driver flushes what comes through
// it, as it does after a READ has failed. If the driver cannot, this returns the problem.
std::optional<Problem> GpuFlush::prepare_path(Path& path, const gdr::FlushNeed& need) {
  PathResources& resources = *path.resources;
  const bool is_known = need.by_host && is_by_host(path);
  if (resources.queues.loopback || is_known) return std::nullopt;
  auto loopback = make_loopback(resources);
  if (loopback) {
    resources.queues.loopback = *std::move(loopback);
    flusher_->add_rail(path.rail, &*resources.queues.loopback, comm_.control_key(resources));
    return std::nullopt;
  }
  if (!need.by_host) return loopback.error();
  BL_INFO(kLogNet, "%s: the CUDA driver flushes GPU memory, because the NIC cannot: %s",
          comm_.name_for_log(path.index).c_str(), loopback.error().text.c_str());
  rails_flushed_by_host_ |= bit_of(path);
  return std::nullopt;
}

Result<std::uint8_t> GpuFlush::prepare(const gdr::FlushNeed& need, std::uint8_t rails,
                                       void* place) {
  if (!need.any) return rails;
  flushed_gpus_.fetch_or(need.owner, std::memory_order_acq_rel);
  const std::lock_guard lock(preparing_);
  if (flusher_ == nullptr) {
    flusher_ = std::make_unique<Flusher>(count_rails(paths()), place);
  }
  std::uint8_t prepared = 0;
  std::vector<std::pair<const Path*, Problem>> refusals;
  std::uint8_t tried = 0;
  for (Path& path : paths()) {
    if (path.resources->is_missing()) continue;
    // A rail with several paths uses the completion queue of the first one.
    const std::uint8_t bit = bit_of(path);
    if ((rails & bit) == 0 || (std::exchange(tried, tried | bit) & bit) != 0) continue;
    auto problem = prepare_path(path, need);
    if (problem) {
      refusals.emplace_back(&path, *std::move(problem));
    } else {
      prepared |= bit;
    }
  }
  for (const auto& [path, problem] : refusals) report_unflushed(*path, problem, prepared != 0);
  if (prepared == 0 && !refusals.empty()) {
    const Problem& first = refusals.front().second;
    return fail(first.code, "connect the port to itself", first.sys_errno);
  }
  if (need.in_test) comm_.gate().set_flushes_in_test();
  return prepared;
}

// The data thread must not wait for the thread that registers memory.
bool GpuFlush::needs_loopback(const Path& path) {
  const std::unique_lock lock(preparing_, std::try_to_lock);
  return !lock || (flusher_ != nullptr && !is_by_host(path));
}

bool GpuFlush::leave_device_of(const Path& path) {
  const std::unique_lock lock(preparing_, std::try_to_lock);
  if (!lock) return false;
  // Another path of the rail may have a device that works already.
  if (flusher_ != nullptr && path.rail_device != nullptr && path.rail_device->context->is_gone())
    leave_rail(path.rail);
  return true;
}

// If the rail gets another device, the path that has its loopback goes first.
bool GpuFlush::can_swap(const Path& path, const PathResources& made) const noexcept {
  if (flusher_ == nullptr) return true;
  for (const Path& other : paths()) {
    if (other.rail != path.rail || !other.resources->queues.loopback) continue;
    if (&other != &path) return other.resources->device == made.device;
    return made.queues.loopback.has_value();
  }
  return true;
}

// No READ by the new device flushes what the former one has written, so that has to be visible
// before the rail moves. A device that is gone has written all that it will.
bool GpuFlush::use_device_of(const Path& path, PathResources& made) {
  const Device* const former = path.rail_device;
  if (flusher_ != nullptr && former != nullptr && !former->context->is_gone() &&
      !is_settled(path.rail) && !drop_if_host_flushes())
    return false;
  const bool is_flushed = made.queues.loopback || is_by_host(path);
  const bool is_flushable = flusher_ == nullptr || is_flushed;
  const std::shared_ptr<RegisteredBuffers> all = comm_.buffers();
  if (!all->use_device(path.rail, *made.device, is_flushable)) return false;
  if (flusher_ == nullptr) return true;
  leave_rail(path.rail);
  flusher_->return_rail(
      path.rail, [&](std::uint64_t address) { return all->remote_key(path.rail, address, 1); });
  return true;
}

// Whether the rail's flushes use, or will use, the loopback of this path.
bool GpuFlush::has_loopback_of_rail(const Path& path) const noexcept {
  const auto holder = std::ranges::find_if(paths(), [&](const Path& one) {
    return one.rail == path.rail && one.resources->queues.loopback.has_value();
  });
  return holder == paths().end() || &*holder == &path;
}

bool GpuFlush::swap(Path& path, PathResources& made, bool moves_rail) {
  const std::unique_lock lock(preparing_, std::try_to_lock);
  if (!lock || !can_swap(path, made)) return false;
  if (moves_rail && !use_device_of(path, made)) return false;
  const bool flushes = flusher_ != nullptr && !is_by_host(path) && has_loopback_of_rail(path);
  if (!flushes) made.queues.loopback.reset();
  PathResources& resources = *path.resources;
  std::swap(resources, made);
  if (resources.queues.loopback) {
    flusher_->renew_rail(path.rail, &*resources.queues.loopback, comm_.control_key(resources));
    if (std::exchange(says_by_host_, false)) {
      BL_INFO(kLogNet, "%s: the NIC flushes GPU memory again",
              comm_.name_for_log(path.index).c_str());
    }
  }
  return true;
}

// Once for each rail, if others carry the data.
void GpuFlush::report_unflushed(const Path& path, const Problem& problem, bool has_others) {
  const std::uint8_t bit = bit_of(path);
  if (has_others && (unflushed_rails_ & bit) != 0) return;
  if (has_others) unflushed_rails_ |= bit;
  BL_WARN("%s: data received into GPU memory cannot be flushed: %s%s",
          comm_.name_for_log(path.index).c_str(), problem.text.c_str(),
          has_others ? ". The other rails of the connection carry the data of such memory" : "");
}

}  // namespace beeline
