// SPDX-License-Identifier: Apache-2.0
//
// The functions in the tables of all versions of NCCL's interface, with C types: one overload for
// each signature that a function has had.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/hot.h"
#include "include/nccl/net_common.h"
#include "plugin/abi/edge.h"
#include "plugin/runtime/net.h"
#include "plugin/transfer/recv_grant.h"

namespace beeline::abi {

inline constexpr char kName[] = "Beeline";

// NCCL_NET_OPTIONAL_RECV_COMPLETION: NCCL puts it where irecv returns its request.
inline void* const kOptionalReceive = reinterpret_cast<void*>(std::uintptr_t{1});

// --- Functions that have the same signature in all versions -----------------------------------

ncclResult_t devices(int* count) noexcept;
ncclResult_t reg_mr_dmabuf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                           int fd, void** mhandle) noexcept;
ncclResult_t dereg_mr(void* comm, void* mhandle) noexcept;
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                    void** request) noexcept;
ncclResult_t test(void* request, int* done, int* sizes) noexcept;
ncclResult_t close_send(void* comm) noexcept;
ncclResult_t close_recv(void* comm) noexcept;
ncclResult_t close_listen(void* comm) noexcept;

// --- Functions with several signatures: the type of a table's slot chooses the overload ---------

// The first is for v6 to v9, the second for v10. From v11 on, NCCL calls the third once for each
// communicator. The profiler's callback is not kept: its data needs a layout that the profiler
// knows, and none is defined for this plugin.
ncclResult_t init(ncclDebugLogger_t logger) noexcept;
ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler) noexcept;
ncclResult_t init(void** ctx, std::uint64_t comm_id, ncclNetCommConfig_v10_t* config,
                  ncclDebugLogger_t logger, ncclProfilerCallback_t profiler) noexcept;
// NCCL 2.27.3 to 2.29.7 uses v10 or v11, and its user has to be warned. v12 has the type of v11.
ncclResult_t init_v11(void** ctx, std::uint64_t comm_id, ncclNetCommConfig_v10_t* config,
                      ncclDebugLogger_t logger, ncclProfilerCallback_t profiler) noexcept;
ncclResult_t finalize(void* ctx) noexcept;

// Up to v10; from v11 on.
ncclResult_t listen(int dev, void* handle, void** listen_comm) noexcept;
ncclResult_t listen(void* ctx, int dev, void* handle, void** listen_comm) noexcept;

// v6; up to v9; v10; from v11 on. Device handles are for transports that run on the GPU.
ncclResult_t connect(int dev, void* handle, void** send_comm) noexcept;
inline ncclResult_t connect(int dev, void* handle, void** send_comm,
                            ncclNetDeviceHandle_t** /*device*/) noexcept {
  return connect(dev, handle, send_comm);
}
ncclResult_t connect(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** send_comm,
                     ncclNetDeviceHandle_t** device) noexcept;
ncclResult_t connect(void* ctx, int dev, void* handle, void** send_comm,
                     ncclNetDeviceHandle_t** device) noexcept;

// v6; from v7 on.
ncclResult_t accept(void* listen_comm, void** recv_comm) noexcept;
inline ncclResult_t accept(void* listen_comm, void** recv_comm,
                           ncclNetDeviceHandle_t** /*device*/) noexcept {
  return accept(listen_comm, recv_comm);
}

// From v8 on; up to v7.
ncclResult_t reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) noexcept;
ncclResult_t reg_mr(void* comm, void* data, int size, int type, void** mhandle) noexcept;

// v9; up to v8; from v10 on. A negative size becomes one that is too large.
ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                   void** request) noexcept;
inline ncclResult_t isend(void* comm, void* data, int size, int tag, void* mhandle,
                          void** request) noexcept {
  return isend(comm, data, static_cast<std::size_t>(size), tag, mhandle, request);
}
inline ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                          void* /*phandle*/, void** request) noexcept {
  return isend(comm, data, size, tag, mhandle, request);
}

void flush_in_test(RecvComm& comm, std::uint32_t count, void** data, const int* sizes,
                   void** mhandles, void* request);

template <class Size>
BL_INLINED ReceiveBuffer buffer_at(std::uint32_t i, void** data, const Size* sizes, const int* tags,
                                   void** mhandles) noexcept {
  return {.data = data[i],
          .capacity = static_cast<std::size_t>(sizes[i]),
          .tag = tags[i],
          .memory = static_cast<const MemoryHandle*>(mhandles[i])};
}

// Shared by both forms of irecv below. `Size` is int up to v8, size_t from v9 on.
template <class Count, class Size>
BL_INLINED ncclResult_t irecv_some(void* comm, Count count, void** data, const Size* sizes,
                                   const int* tags, void** mhandles, Need need,
                                   void** request) noexcept {
  return fast_edge([&]() BL_INLINED_LAMBDA {
    Comm& end = *static_cast<Comm*>(comm);
    if (end.role() != Role::kReceive) return Errc::kInvalid;
    const auto at = [&](std::uint32_t i)
                        BL_INLINED_LAMBDA { return buffer_at(i, data, sizes, tags, mhandles); };
    RecvComm& receiver = static_cast<RecvComm&>(end);
    const Errc code = receiver.irecv(count, at, need, request);
    // Up to v8, the interface has no way to say that a GPU's memory needs flushes.
    if constexpr (std::same_as<Size, int>) {
      if (receiver.flushes_in_test() && *request != nullptr) [[unlikely]] {
        flush_in_test(receiver, count, data, sizes, mhandles, *request);
      }
    }
    return code;
  });
}

template <Paths kPaths>
ncclResult_t post_written(RecvComm& comm) noexcept;

template <class Size>
[[gnu::noinline]] ncclResult_t irecv_slow(void* comm, int n, void** data, Size* sizes, int* tags,
                                          void** mhandles, void** request) noexcept {
  if (request == nullptr) return ncclInvalidArgument;
  // `*request` is left from an earlier use. From v9 on, it may also say that NCCL does not need the
  // completion; NCCL gets a real request all the same.
  const bool is_optional = std::same_as<Size, std::size_t> && *request == kOptionalReceive;
  *request = nullptr;
  if (comm == nullptr) return ncclInvalidArgument;
  if (data == nullptr) return ncclInvalidArgument;
  if (sizes == nullptr) return ncclInvalidArgument;
  if (tags == nullptr) return ncclInvalidArgument;
  if (mhandles == nullptr) return ncclInvalidArgument;
  if (n < 1 || n > int{wire::kMaxReceives}) return ncclInvalidArgument;
  const bool is_done_early = is_optional && n == 1 && static_cast<Comm*>(comm)->early_done();
  const Need need = is_done_early ? Need::kNothing : Need::kArrival;
  if (n == 1) {
    using One = std::integral_constant<std::uint32_t, 1>;
    return irecv_some(comm, One(), data, sizes, tags, mhandles, need, request);
  }
  return irecv_some(comm, static_cast<std::uint32_t>(n), data, sizes, tags, mhandles, need,
                    request);
}

// The fast irecv of a comm with so many paths. False: nothing has been done.
template <Paths kPaths, class Size>
BL_INLINED bool irecv_if_fast(RecvComm& receiver, void** data, const Size* sizes, const int* tags,
                              void** mhandles, void** request) noexcept {
  const ReceiveBuffer buffer = buffer_at(0, data, sizes, tags, mhandles);
  if (!receiver.begin_grant<kPaths>(buffer.capacity, buffer.memory)) [[unlikely]]
    return false;
  receiver.write_grant<kPaths>(buffer, request);
  return true;
}

// noipa: GCC would leave out the argument that is not used, and so move the others to other
// registers.
template <class Size>
[[gnu::noipa]] ncclResult_t irecv_on_several(void* comm, int /*n*/, void** data, Size* sizes,
                                             int* tags, void** mhandles, void** request) noexcept {
  Comm& any = *static_cast<Comm*>(comm);
  if (any.enter_if_fast(Role::kReceive, Paths::kSeveral)) [[likely]] {
    RecvComm& receiver = static_cast<RecvComm&>(any);
    if (irecv_if_fast<Paths::kSeveral>(receiver, data, sizes, tags, mhandles, request)) [[likely]]
      return post_written<Paths::kSeveral>(receiver);
  }
  return irecv_slow(comm, 1, data, sizes, tags, mhandles, request);
}

// The fast irecv of a comm with one path. It leaves everything else to the functions above. Their
// arguments are the same, so that these stay in their registers.
template <class Size>
ncclResult_t irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                   void** request) noexcept {
  const bool is_simple = request != nullptr && comm != nullptr && data != nullptr &&
                         sizes != nullptr && tags != nullptr && mhandles != nullptr && n == 1 &&
                         *request != kOptionalReceive;
  if (!is_simple) [[unlikely]]
    return irecv_slow(comm, n, data, sizes, tags, mhandles, request);
  Comm& any = *static_cast<Comm*>(comm);
  if (!any.enter_if_fast(Role::kReceive, Paths::kOne)) [[unlikely]]
    return irecv_on_several(comm, n, data, sizes, tags, mhandles, request);
  RecvComm& receiver = static_cast<RecvComm&>(any);
  if (irecv_if_fast<Paths::kOne>(receiver, data, sizes, tags, mhandles, request)) [[likely]]
    return post_written<Paths::kOne>(receiver);
  return irecv_slow(comm, n, data, sizes, tags, mhandles, request);
}

// From v10 on.
inline ncclResult_t irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags,
                          void** mhandles, void** /*phandles*/, void** request) noexcept {
  return irecv(comm, n, data, sizes, tags, mhandles, request);
}

}  // namespace beeline::abi
