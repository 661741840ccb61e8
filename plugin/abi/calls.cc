// SPDX-License-Identifier: Apache-2.0
//
// C arguments in, our types out; what NCCL may leave NULL is looked at here and nowhere else.
#include "plugin/abi/calls.h"

#include "plugin/runtime/runtime.h"

namespace beeline::abi {
namespace {

HandleBytes handle_bytes(void* handle) noexcept {
  return HandleBytes(static_cast<std::byte*>(handle), kHandleBytes);
}

// NCCL closes and deregisters NULL after its own errors.
template <class T, class F>
ncclResult_t unless_null(void* object, F&& end) noexcept {
  return edge([&]() -> Status {
    if (object != nullptr) end(static_cast<T*>(object));
    return {};
  });
}

}  // namespace

ncclResult_t init(ncclDebugLogger_t logger) noexcept {
  return edge([&]() -> Status {
    // The logger's first argument is an enumeration there and an int here: the same to the machine.
    Runtime::instance().init(reinterpret_cast<LogSink>(logger));
    return {};
  });
}

ncclResult_t devices(int* count) noexcept {
  return edge([&]() -> Status {
    if (count == nullptr) return fail(Errc::kInvalid, "devices");
    *count = static_cast<int>(Runtime::instance().devices().size());
    return {};
  });
}

Result<const Device*> find(int dev) noexcept { return Runtime::instance().device(dev); }

ncclResult_t listen(int dev, void* handle, void** listen_comm) noexcept {
  return edge([&]() -> Status {
    if (handle == nullptr || listen_comm == nullptr) return fail(Errc::kInvalid, "listen");
    *listen_comm = nullptr;
    *listen_comm = BL_TRY(net::listen(dev, handle_bytes(handle)));
    return {};
  });
}

ncclResult_t connect(int dev, void* handle, void** send_comm) noexcept {
  return edge([&]() -> Status {
    if (handle == nullptr || send_comm == nullptr) return fail(Errc::kInvalid, "connect");
    *send_comm = nullptr;
    *send_comm = BL_TRY(net::connect(dev, handle_bytes(handle)));
    return {};
  });
}

ncclResult_t accept(void* listen_comm, void** recv_comm) noexcept {
  return edge([&]() -> Status {
    if (listen_comm == nullptr || recv_comm == nullptr) return fail(Errc::kInvalid, "accept");
    *recv_comm = nullptr;
    *recv_comm = BL_TRY(net::accept(*static_cast<Listener*>(listen_comm)));
    return {};
  });
}

ncclResult_t reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) noexcept {
  return edge([&]() -> Status {
    if (comm == nullptr || mhandle == nullptr) return fail(Errc::kInvalid, "regMr");
    *mhandle = nullptr;
    *mhandle = BL_TRY(net::register_memory(
        *static_cast<Comm*>(comm),
        {.data = data,
         .size = size,
         .kind = type == NCCL_PTR_HOST ? MemoryKind::kHost : MemoryKind::kCuda}));
    return {};
  });
}

ncclResult_t reg_mr_dmabuf(void* comm, void* data, std::size_t size, int /*type*/,
                           std::uint64_t offset, int fd, void** mhandle) noexcept {
  return edge([&]() -> Status {
    if (comm == nullptr || mhandle == nullptr) return fail(Errc::kInvalid, "regMrDmaBuf");
    *mhandle = nullptr;
    *mhandle = BL_TRY(net::register_memory(*static_cast<Comm*>(comm), {.data = data,
                                                                       .size = size,
                                                                       .kind = MemoryKind::kDmabuf,
                                                                       .dmabuf_fd = fd,
                                                                       .dmabuf_offset = offset}));
    return {};
  });
}

ncclResult_t dereg_mr(void* /*comm*/, void* mhandle) noexcept {
  return unless_null<MemoryHandle>(mhandle, [](auto* memory) { net::deregister_memory(memory); });
}

ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                   void** request) noexcept {
  return edge([&]() -> Status {
    if (comm == nullptr || request == nullptr) return fail(Errc::kInvalid, "isend");
    *request = nullptr;
    if (mhandle == nullptr || size > wire::kMaxMessageBytes) {
      return fail(Errc::kInvalid, "isend from such a buffer");
    }
    *request = BL_TRY(net::isend(*static_cast<Comm*>(comm), data, size, tag,
                                 *static_cast<const MemoryHandle*>(mhandle)));
    return {};
  });
}

// Nothing to do for host memory: what a completed receive wrote, the CPU and the GPU see. NULL says
// "flushed".
ncclResult_t iflush(void* comm, int /*n*/, void** /*data*/, int* /*sizes*/, void** /*mhandles*/,
                    void** request) noexcept {
  return edge([&]() -> Status {
    if (comm == nullptr || request == nullptr) return fail(Errc::kInvalid, "iflush");
    *request = nullptr;
    return {};
  });
}

ncclResult_t test(void* request, int* done, int* sizes) noexcept {
  return edge([&]() -> Status {
    if (request == nullptr || done == nullptr) return fail(Errc::kInvalid, "test");
    *done = 0;
    *done = BL_TRY(net::test(*static_cast<Request*>(request), sizes)) ? 1 : 0;
    return {};
  });
}

ncclResult_t close_send(void* comm) noexcept {
  return unless_null<Comm>(comm, [](Comm* end) { net::close(end); });
}

ncclResult_t close_recv(void* comm) noexcept {
  return unless_null<Comm>(comm, [](Comm* end) { net::close(end); });
}

ncclResult_t close_listen(void* comm) noexcept {
  return unless_null<Listener>(comm, [](Listener* listener) { net::close(listener); });
}

}  // namespace beeline::abi
