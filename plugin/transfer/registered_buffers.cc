// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/registered_buffers.h"

#include <algorithm>
#include <utility>

#include "common/check/assert.h"
#include "plugin/device/port_report.h"

namespace beeline {
namespace {

Registration* find(MemoryHandle& handle, std::size_t rail, const Device& device) noexcept {
  const auto found = std::ranges::find_if(handle.registrations, [&](const Registration& one) {
    return one.rail == rail && one.device == &device;
  });
  return found == handle.registrations.end() ? nullptr : &*found;
}

bool covers(const MemoryHandle& handle, std::uint64_t address, std::uint32_t bytes) noexcept {
  const auto start = reinterpret_cast<std::uint64_t>(handle.buffer.data);
  return address >= start && address - start <= handle.buffer.size &&
         bytes <= handle.buffer.size - (address - start);
}

// Also if its event has not come yet.
bool is_lost(const Rail& rail) noexcept {
  return rail.cache == nullptr || rail.device->context->is_gone() ||
         !query_own_port(*rail.device, {}).state;
}

}  // namespace

Result<std::vector<Rail>> RegisteredBuffers::rails() {
  const std::lock_guard lock(mutex_);
  std::vector<Rail> rails;
  for (const Device* const current : devices_) {
    Rail rail = {.device = current};
    const bool is_used =
        current != nullptr && !(current->context->is_gone() && means_->has_recovery);
    if (is_used) rail.cache = BL_TRY(means_->caches->cache(*current));
    rails.push_back(rail);
  }
  return rails;
}

// The event of a removal may not have come yet when the device refuses.
Result<std::unique_ptr<MemoryHandle>> RegisteredBuffers::make(const Buffer& buffer) {
  const std::vector<Rail> all = BL_TRY(rails());
  const bool has_device = std::ranges::any_of(all, [](const Rail& one) { return one.cache; });
  if (!has_device) return handle_without_rails(buffer, means_->gpus);
  auto made = register_buffer(all, buffer, means_->gpus, *means_->left_out);
  if (made || !means_->has_recovery || !std::ranges::all_of(all, &is_lost)) return made;
  return handle_without_rails(buffer, means_->gpus);
}

// A rail may have got another device since make(), or may be about to.
MemoryHandle* RegisteredBuffers::add(std::unique_ptr<MemoryHandle> handle) {
  const std::lock_guard lock(mutex_);
  BL_ASSERT(handle->comm_buffers == nullptr, "a handle is added once");
  handle->comm_buffers = shared_from_this();
  for (std::size_t rail = 0; rail < devices_.size(); ++rail) {
    if (next_[rail] != nullptr) (void)register_locked(*handle, rail, *next_[rail]);
    if (devices_[rail] == nullptr || devices_[rail]->context->is_gone()) continue;
    if (find(*handle, rail, *devices_[rail]) != nullptr) continue;
    (void)register_locked(*handle, rail, *devices_[rail]);
    const Registration* const made = find(*handle, rail, *devices_[rail]);
    if (made != nullptr && made->mr) {
      handle->use(rail, made->mr);
    } else {
      handle->keep_rails(static_cast<std::uint8_t>(~(1U << rail)));
    }
  }
  handles_.push_back(nullptr);  // may throw
  return handles_.back() = handle.release();
}

void RegisteredBuffers::remove(MemoryHandle* handle) noexcept {
  const std::unique_ptr<MemoryHandle> owned(handle);
  if (handle->comm_buffers != nullptr) handle->comm_buffers->erase(*handle);
}

void RegisteredBuffers::erase(const MemoryHandle& handle) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(handles_, &handle);
}

Outcome<void> RegisteredBuffers::register_locked(MemoryHandle& handle, std::size_t rail,
                                                 const Device& device) {
  if (find(handle, rail, device) != nullptr) return {};
  Result<MrCache*> cache = means_->caches->cache(device);
  if (!cache) return fail(Problem(cache.error()));
  return register_again(handle, rail, {.device = &device, .cache = *cache}, means_->gpus);
}

// The mutex is free between two registrations, so that nobody waits for more than one.
Outcome<void> RegisteredBuffers::prepare(std::size_t rail, const Device& device, bool needs_all) {
  begin(rail, device);
  for (;;) {
    const std::lock_guard lock(mutex_);
    const auto left = std::ranges::find_if(
        handles_, [&](MemoryHandle* handle) { return find(*handle, rail, device) == nullptr; });
    if (left == handles_.end()) break;
    Outcome<void> registered = register_locked(**left, rail, device);
    const bool is_refused = find(**left, rail, device) != nullptr;
    if (!registered && (needs_all || !is_refused)) return registered;
  }
  return {};
}

// Drops the registrations with devices that are not used any more, and refusals: a device that has
// refused a buffer may take it now.
void RegisteredBuffers::begin(std::size_t rail, const Device& device) {
  const std::lock_guard lock(mutex_);
  next_[rail] = devices_[rail] == &device ? nullptr : &device;
  for (MemoryHandle* const handle : handles_) {
    std::erase_if(handle->registrations, [&](const Registration& one) {
      if (one.rail != rail || one.device == devices_[rail]) return false;
      return one.device != &device || !one.mr;
    });
  }
}

// The registrations with the former device stay until the control thread drops them, because that
// takes long, or until NCCL deregisters the buffer.
bool RegisteredBuffers::use_device(std::size_t rail, const Device& device, bool is_flushable) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  if (devices_[rail] == &device) return true;
  // Another path of the rail may have been prepared for another device since.
  const auto is_prepared = [&](MemoryHandle* handle) {
    return find(*handle, rail, device) != nullptr;
  };
  if (!std::ranges::all_of(handles_, is_prepared)) return false;
  const auto bit = static_cast<std::uint8_t>(1U << rail);
  for (MemoryHandle* const handle : handles_) {
    const Registration* const made = find(*handle, rail, device);
    handle->keep_rails(static_cast<std::uint8_t>(~bit));
    const bool may_use = is_flushable || !handle->flush.any;
    if (made != nullptr && made->mr && may_use) handle->use(rail, made->mr);
  }
  devices_[rail] = &device;
  next_[rail] = nullptr;
  return true;
}

std::optional<std::uint32_t> RegisteredBuffers::remote_key(std::size_t rail, std::uint64_t address,
                                                           std::uint32_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const MemoryHandle* const handle : handles_) {
    if ((handle->rails >> rail & 1) != 0 && covers(*handle, address, bytes)) {
      return handle->rkeys[rail];
    }
  }
  return std::nullopt;
}

}  // namespace beeline
