// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/registration.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "plugin/device/memlock.h"

namespace beeline {
namespace {

// A rail that did not take the buffer.
struct Refused {
  const Device* device = nullptr;
  Error error;
  std::string cause;
  bool was_logged = false;  // at init, with what to do about it
};

using Refusals = std::vector<Refused>;

Result<MrRef, Refused> register_host(const Rail& rail, const Buffer& buffer) {
  auto made = rail.cache->acquire(
      {.address = buffer.data, .length = buffer.size, .ordering = verbs::Ordering::kRelaxed});
  if (made) return *std::move(made);
  const Error& error = made.error();
  std::string cause = error.sys_errno != 0 ? std::strerror(error.sys_errno) : describe(error);
  return fail(Refused{rail.device, error, cause + memlock_advice(error)});
}

Result<MrRef, Refused> register_gpu(const Rail& rail, const Buffer& buffer,
                                    const gdr::GpuDirect& gpus, const gpu::Gpu* owner) {
  auto made = gdr::register_gpu(*rail.cache,
                                {.address = buffer.data,
                                 .length = buffer.size,
                                 .dmabuf_fd = buffer.dmabuf_fd,
                                 .dmabuf_offset = buffer.dmabuf_offset,
                                 .buffer_id = gpus.buffer_id_of(buffer.data)},
                                gpus.means(*rail.device, owner));
  if (made) return std::move(made->mr);
  return fail(Refused{rail.device, made.error().error, made.error().why});
}

bool has_path(const Rail& rail) noexcept { return rail.cache != nullptr; }

// `gpus` is null for host memory. A rail that has to be used, because the comm has no other, does
// what NCCL asks for in any case.
Result<MrRef, Refused> register_with(const Rail& rail, bool has_others, const Buffer& buffer,
                                     const gdr::GpuDirect* gpus, const gpu::Gpu* owner) {
  if (has_others && gpus != nullptr && gpus->has_failed(*rail.device)) {
    return fail(Refused{rail.device,
                        {Errc::kUnsupported, 0, "use GPUDirect"},
                        "GPUDirect does not work with it, as logged at init",
                        true});
  }
  auto made =
      gpus == nullptr ? register_host(rail, buffer) : register_gpu(rail, buffer, *gpus, owner);
  if (made && has_others && made->rkey() == 0) {
    return fail(Refused{rail.device,
                        {Errc::kUnsupported, 0, "use the remote key 0"},
                        "the device gave it the remote key 0, which means \"no key\" in Beeline's "
                        "protocol"});
  }
  return made;
}

void keep(MemoryHandle& handle, std::size_t rail, const Device* device, MrRef made) {
  handle.registrations.push_back(
      {.rail = static_cast<std::uint8_t>(rail), .device = device, .mr = std::move(made)});
}

std::string what_is_registered(const Buffer& buffer) {
  return "registering " + bytes_text(buffer.size) + " of " +
         (buffer.kind == MemoryKind::kHost ? "memory" : "GPU memory");
}

// "mlx5_0 port 1, mlx5_1 port 1: Cannot allocate memory; mlx5_2 port 1: Bad address"
std::string devices_and_causes(Refusals refusals) {
  std::string text;
  while (!refusals.empty()) {
    const std::string cause = refusals.front().cause;
    std::string names;
    for (const Refused& refusal : refusals) {
      if (refusal.cause == cause) names += (names.empty() ? "" : ", ") + label(*refusal.device);
    }
    text.append(text.empty() ? "" : "; ").append(names).append(": ").append(cause);
    std::erase_if(refusals, [&](const Refused& refusal) { return refusal.cause == cause; });
  }
  return text;
}

Failure<Error> report_failure(const Buffer& buffer, const Refusals& refusals) {
  if (refusals.empty()) return fail(Errc::kInternal, "register memory with no rail");
  const std::string what = what_is_registered(buffer);
  const Refused& first = refusals.front();
  const std::string text =
      refusals.size() == 1
          ? what + " with " + label(*first.device) + " failed: " + first.cause
          : what + " failed with all rails of the connection: " + devices_and_causes(refusals);
  BL_WARN_LIMITED(3, "%s", text.c_str());
  return fail(first.error);
}

std::string names_of_rails(std::span<const Rail> rails, std::uint8_t mask) {
  std::string names;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if ((mask >> i & 1) != 0) names += (names.empty() ? "" : ", ") + label(*rails[i].device);
  }
  return names;
}

void report_left_out(const Buffer& buffer, Refusals refusals, const std::string& others,
                     LeftOutRails& left_out) {
  const bool is_host = buffer.kind == MemoryKind::kHost;
  std::erase_if(refusals, [&](const Refused& refusal) {
    return !left_out.is_new(*refusal.device, is_host, refusal.error);
  });
  if (refusals.empty()) return;  // all of them are known
  const std::string text = what_is_registered(buffer) + " failed with " +
                           devices_and_causes(refusals) +
                           ". The other rails of the connection carry the data of such memory (" +
                           others + "). This is logged once for each device and error";
  if (std::ranges::all_of(refusals, &Refused::was_logged)) {
    BL_INFO(kLogNet, "%s", text.c_str());
  } else {
    BL_WARN("%s", text.c_str());
  }
}

}  // namespace

std::unique_ptr<MemoryHandle> handle_without_rails(const Buffer& buffer,
                                                   const gdr::GpuDirect* gpus) {
  auto handle = std::make_unique<MemoryHandle>();
  handle->buffer = buffer;
  handle->buffer.dmabuf_fd = -1;
  if (buffer.kind == MemoryKind::kHost || gpus == nullptr) return handle;
  handle->flush = gpus->flush_need(gpus->owner_of(buffer.data));
  handle->short_send_flags = IBV_SEND_SIGNALED;  // the CPU cannot copy it into the work request
  return handle;
}

Result<std::unique_ptr<MemoryHandle>> register_buffer(std::span<const Rail> rails,
                                                      const Buffer& buffer,
                                                      const gdr::GpuDirect* gpus,
                                                      LeftOutRails& left_out) {
  const bool is_host = buffer.kind == MemoryKind::kHost;
  if (!is_host && (gpus == nullptr || !gpus->has_driver())) {
    BL_WARN_LIMITED(1, "GPU memory cannot be registered: there is no CUDA driver that works");
    return fail(Errc::kUnsupported, "register GPU memory");
  }
  auto handle = handle_without_rails(buffer, gpus);
  const gpu::Gpu* const owner = is_host ? nullptr : gpus->owner_of(buffer.data);
  Refusals refusals;
  const bool has_several = std::ranges::count_if(rails, &has_path) > 1;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (!has_path(rails[i])) continue;
    auto made = register_with(rails[i], has_several, buffer, is_host ? nullptr : gpus, owner);
    if (made) {
      handle->use(i, *made);
      keep(*handle, i, rails[i].device, *std::move(made));
    } else {
      keep(*handle, i, rails[i].device, {});
      refusals.push_back(made.error());
    }
  }
  if (handle->rails == 0) return report_failure(buffer, refusals);
  if (!refusals.empty()) {
    report_left_out(buffer, std::move(refusals), names_of_rails(rails, handle->rails), left_out);
  }
  return handle;
}

// The CUDA driver exports a dma-buf once more, since the caller may have closed its own.
Outcome<void> register_again(MemoryHandle& handle, std::size_t rail, const Rail& with,
                             const gdr::GpuDirect* gpus) {
  const bool is_host = handle.buffer.kind == MemoryKind::kHost;
  const gpu::Gpu* const owner = is_host ? nullptr : gpus->owner_of(handle.buffer.data);
  auto made = register_with(with, true, handle.buffer, is_host ? nullptr : gpus, owner);
  if (made) {
    keep(handle, rail, with.device, *std::move(made));
    return {};
  }
  keep(handle, rail, with.device, {});
  const Refused& refusal = made.error();
  return fail(Problem(refusal.error.code, what_is_registered(handle.buffer) + " with " +
                                              label(*with.device) + " failed: " + refusal.cause));
}

}  // namespace beeline
