// SPDX-License-Identifier: Apache-2.0
//
// The buffers that NCCL has registered with one comm. When a rail of the comm gets another device,
// because its own was removed and came back, or has no link, all of them are registered with that
// device as well. Their keys change at a moment when no path of the rail is in use.
//
// Threads: a mutex. The calls of use_device() and remote_key() come from whoever owns the comm
// (comm_gate.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plugin/connect/comm/link.h"
#include "plugin/transfer/registration.h"
#include "plugin/wire/limits.h"

namespace beeline {

// The caches of all devices.
class MrCaches {
 public:
  virtual Result<MrCache*> cache(const Device& device) = 0;

 protected:
  ~MrCaches() = default;
};

// A comm registers its buffers with these. The struct and all that it points to outlive the comm.
struct RegistrationMeans {
  MrCaches* caches = nullptr;
  const gdr::GpuDirect* gpus = nullptr;  // null: there is no GPU memory
  LeftOutRails* left_out = nullptr;
  // A device that is gone may come back, or another stands in for it: a buffer that it cannot
  // register is registered then.
  bool has_recovery = false;
};

class RegisteredBuffers final : public RailBuffers,
                                public std::enable_shared_from_this<RegisteredBuffers> {
 public:
  using RailDevice = std::array<const Device*, wire::kMaxRails>;  // null: no path uses the rail

  RegisteredBuffers(const RailDevice& devices, const RegistrationMeans& means) noexcept
      : means_(&means), devices_(devices) {}

  // Logs a failure. The caller passes the handle to add(), once it knows which rails can flush.
  Result<std::unique_ptr<MemoryHandle>> make(const Buffer& buffer);
  MemoryHandle* add(std::unique_ptr<MemoryHandle> handle);
  // When it returns, no NIC can access the memory through this handle.
  static void remove(MemoryHandle* handle) noexcept;

  Outcome<void> prepare(std::size_t rail, const Device& device, bool needs_all) override;
  // From now on the rail is served by that device, and the handles have its keys. False: not now.
  // `is_flushable`: memory that needs flushes may use the rail.
  bool use_device(std::size_t rail, const Device& device, bool is_flushable);
  // The key by which the peer can write to these bytes on this rail, if they are registered.
  std::optional<std::uint32_t> remote_key(std::size_t rail, std::uint64_t address,
                                          std::uint32_t bytes);
  // Calls `f(address, key)` for each buffer that this rail may write to and whose data needs
  // flushes. False: not now.
  template <class F>
  bool each_to_flush(std::size_t rail, F&& f) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    for (const MemoryHandle* const handle : handles_) {
      if (!handle->flush.any || (handle->rails >> rail & 1) == 0 || handle->buffer.size == 0)
        continue;
      f(reinterpret_cast<std::uint64_t>(handle->buffer.data), handle->rkeys[rail]);
    }
    return true;
  }

 private:
  Result<std::vector<Rail>> rails();
  Outcome<void> register_locked(MemoryHandle& handle, std::size_t rail, const Device& device);
  void begin(std::size_t rail, const Device& device);
  void erase(const MemoryHandle& handle) noexcept;

  const RegistrationMeans* means_;
  std::mutex mutex_;
  // Under the mutex:
  RailDevice devices_;
  RailDevice next_{};  // that are being prepared
  std::vector<MemoryHandle*> handles_;
};

}  // namespace beeline
