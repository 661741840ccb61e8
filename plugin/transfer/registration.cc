// SPDX-License-Identifier: Apache-2.0
//
// Rail by rail. If a later one fails, the handle's destructor releases the earlier ones.
#include "plugin/transfer/registration.h"

#include "common/base/log.h"
#include "plugin/device/memlock.h"

namespace beeline {
namespace {

std::string doing(const Device& device, const Buffer& buffer, const char* what) {
  return "registering " + bytes_text(buffer.size) + " of " + what + " with " + label(device);
}

Result<MrRef> register_host(const Rail& rail, const Buffer& buffer) {
  auto made = rail.cache->acquire(
      {.address = buffer.data, .length = buffer.size, .ordering = verbs::Ordering::kRelaxed});
  if (!made) {
    const std::string text = doing(*rail.device, buffer, "memory");
    BL_WARN_LIMITED(3, "%s", explain_enomem(text, made.error()).c_str());
  }
  return made;
}

Result<MrRef> register_gpu(const Rail& rail, const Buffer& buffer, const gdr::GpuDirect& gpus,
                           const gpu::Gpu* owner) {
  auto made = gdr::register_gpu(*rail.cache,
                                {.address = buffer.data,
                                 .length = buffer.size,
                                 .dmabuf_fd = buffer.dmabuf_fd,
                                 .dmabuf_offset = buffer.dmabuf_offset,
                                 .buffer_id = gpus.buffer_id_of(buffer.data)},
                                gpus.means(*rail.device, owner));
  if (made) return std::move(made->mr);
  BL_WARN_LIMITED(3, "%s failed: %s", doing(*rail.device, buffer, "GPU memory").c_str(),
                  made.error().why.c_str());
  return fail(made.error().error);
}

}  // namespace

Result<std::unique_ptr<MemoryHandle>> register_buffer(std::span<const Rail> rails,
                                                      const Buffer& buffer,
                                                      const gdr::GpuDirect* gpus) {
  const bool is_host = buffer.kind == MemoryKind::kHost;
  if (!is_host && (gpus == nullptr || !gpus->has_driver())) {
    BL_WARN_LIMITED(1, "GPU memory cannot be registered: there is no CUDA driver that works");
    return fail(Errc::kUnsupported, "register GPU memory");
  }
  auto handle = std::make_unique<MemoryHandle>();
  const gpu::Gpu* const owner = is_host ? nullptr : gpus->owner_of(buffer.data);
  if (!is_host) {
    handle->flush = gpus->flush_need(owner);
    handle->short_send_flags = IBV_SEND_SIGNALED;  // the CPU cannot copy it into the work request
  }
  for (std::size_t i = 0; i < rails.size(); ++i) {
    MrRef made = BL_TRY(is_host ? register_host(rails[i], buffer)
                                : register_gpu(rails[i], buffer, *gpus, owner));
    handle->lkeys[i] = made.lkey();
    handle->rkeys[i] = made.rkey();
    handle->registrations.push_back(std::move(made));
  }
  return handle;
}

}  // namespace beeline
