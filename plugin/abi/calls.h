// SPDX-License-Identifier: Apache-2.0
//
// The functions that all versions of NCCL's interface share, with C types. A version's table takes
// these as they are where the signatures agree, and wraps them where they do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "include/nccl/net_common.h"
#include "plugin/abi/edge.h"
#include "plugin/device/device.h"
#include "plugin/runtime/net.h"

namespace beeline::abi {

inline constexpr char kName[] = "Beeline";

ncclResult_t init(ncclDebugLogger_t logger) noexcept;
ncclResult_t devices(int* count) noexcept;
ncclResult_t listen(int dev, void* handle, void** listen_comm) noexcept;
ncclResult_t connect(int dev, void* handle, void** send_comm) noexcept;
ncclResult_t accept(void* listen_comm, void** recv_comm) noexcept;
ncclResult_t reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) noexcept;
ncclResult_t reg_mr_dmabuf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                           int fd, void** mhandle) noexcept;
ncclResult_t dereg_mr(void* comm, void* mhandle) noexcept;
ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                   void** request) noexcept;
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                    void** request) noexcept;
ncclResult_t test(void* request, int* done, int* sizes) noexcept;
ncclResult_t close_send(void* comm) noexcept;
ncclResult_t close_recv(void* comm) noexcept;
ncclResult_t close_listen(void* comm) noexcept;

// `Size` is int up to v8, size_t from v9 on.
template <class Size>
ncclResult_t irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                   void** request) noexcept {
  return edge([&]() -> Status {
    if (comm == nullptr || request == nullptr || data == nullptr || sizes == nullptr ||
        tags == nullptr || mhandles == nullptr || n < 1 || n > int{wire::kMaxReceives}) {
      return fail(Errc::kInvalid, "irecv");
    }
    // What stands there is left over from an earlier use, or says that NCCL can do without the
    // completion: it always gets a real request.
    *request = nullptr;
    std::array<ReceiveBuffer, wire::kMaxReceives> buffers;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      if (mhandles[i] == nullptr || static_cast<std::size_t>(sizes[i]) > wire::kMaxMessageBytes) {
        return fail(Errc::kInvalid, "irecv into such a buffer");
      }
      buffers[i] = {.data = data[i],
                    .capacity = static_cast<std::size_t>(sizes[i]),
                    .tag = tags[i],
                    .memory = static_cast<const MemoryHandle*>(mhandles[i])};
    }
    *request = BL_TRY(
        net::irecv(*static_cast<Comm*>(comm), {buffers.data(), static_cast<std::size_t>(n)}));
    return {};
  });
}

// The fields that every version has since v7, in its own struct. All are written: NCCL's shims hand
// over what happened to lie on their stack.
template <class Properties>
void fill(Properties& out, const Device& device) noexcept {
  out.name = const_cast<char*>(device.name.c_str());
  out.pciPath = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  out.guid = device.guid;
  out.ptrSupport = NCCL_PTR_HOST;
  out.speed = static_cast<int>(device.facts.speed_mbps);
  out.port = device.port;
  out.latency = 0;  // NCCL then takes its own figure for a network
  out.maxComms = 1 << 16;
  out.maxRecvs = wire::kMaxReceives;
  out.netDeviceType = NCCL_NET_DEVICE_HOST;
  out.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
}

Result<const Device*> find(int dev) noexcept;

// getProperties of one version: `more` fills what came after v7.
template <class Properties, class More>
ncclResult_t properties(int dev, Properties* out, More more) noexcept {
  return edge([&]() -> Status {
    if (out == nullptr) return fail(Errc::kInvalid, "getProperties");
    const Device* const device = BL_TRY(find(dev));
    *out = {};
    fill(*out, *device);
    more(*out, *device);
    return {};
  });
}

}  // namespace beeline::abi
