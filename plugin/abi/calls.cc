// SPDX-License-Identifier: Apache-2.0
//
// Converts C arguments to the plugin's types. Pointers that NCCL may leave NULL are checked here,
// and those of irecv in calls.h.
#include "plugin/abi/calls.h"

#include <algorithm>

#include "common/base/log.h"
#include "plugin/abi/context.h"
#include "plugin/abi/properties.h"
#include "plugin/runtime/runtime.h"
#include "plugin/transfer/test_request.h"

namespace beeline::abi {
namespace {

HandleBytes handle_bytes(void* handle) noexcept {
  return HandleBytes(static_cast<std::byte*>(handle), kHandleBytes);
}

int traffic_class_in(const ncclNetCommConfig_v10_t* config) noexcept {
  return traffic_class_of(config == nullptr ? NCCL_NET_TRAFFIC_CLASS_UNDEF : config->trafficClass);
}

// Sets `*made` to the object that `make` returns, or to null. `from`, which `make` uses, may be
// null.
template <class F>
ncclResult_t make_object(const char* call, void** made, const void* from, F&& make) noexcept {
  return edge([&]() -> Status {
    if (made == nullptr) return fail(Errc::kInvalid, call);
    *made = nullptr;
    if (from == nullptr) return fail(Errc::kInvalid, call);
    *made = BL_TRY(make());
    return {};
  });
}

ncclResult_t listen_with(const CommSettings& settings, int dev, void* handle,
                         void** listen_comm) noexcept {
  return make_object("listen", listen_comm, handle,
                     [&] { return net::listen(dev, handle_bytes(handle), settings); });
}

ncclResult_t connect_with(const CommSettings& settings, int dev, void* handle,
                          void** send_comm) noexcept {
  return make_object("connect", send_comm, handle,
                     [&] { return net::connect(dev, handle_bytes(handle), settings); });
}

void init_runtime(ncclDebugLogger_t logger) {
  // The logger's first argument is an enumeration there and an int here, which are passed alike.
  Runtime::instance().init(reinterpret_cast<LogSink>(logger));
  net::note_init();
}

// NCCL 2.27.3 to 2.29.7 forgets the plugin with the last communicator of the process.
void warn_of_forgotten_plugin() noexcept {
  const Runtime& runtime = Runtime::instance();
  if (!runtime.has_devices() || runtime.nccl_keeps_plugin()) return;
  BL_WARN_ONCE(
      "NCCL 2.27.3 to 2.29.7 forgets its network plugin when the last communicator is destroyed: "
      "the "
      "next one uses another network, or fails where NCCL_NET is Beeline. "
      "NCCL_NET_PLUGIN_REF_COUNT=1 prevents this");
}

// After errors of its own, NCCL closes and deregisters NULL.
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
    init_runtime(logger);
    return {};
  });
}

ncclResult_t init(void** ctx, std::uint64_t /*comm_id*/, ncclNetCommConfig_v10_t* config,
                  ncclDebugLogger_t logger, ncclProfilerCallback_t /*profiler*/) noexcept {
  return edge([&]() -> Status {
    init_runtime(logger);
    if (ctx != nullptr) *ctx = new_context(traffic_class_in(config));
    return {};
  });
}

ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t /*profiler*/) noexcept {
  const ncclResult_t result = init(logger);
  warn_of_forgotten_plugin();
  return result;
}

ncclResult_t init_v11(void** ctx, std::uint64_t comm_id, ncclNetCommConfig_v10_t* config,
                      ncclDebugLogger_t logger, ncclProfilerCallback_t profiler) noexcept {
  const ncclResult_t result = init(ctx, comm_id, config, logger, profiler);
  warn_of_forgotten_plugin();
  return result;
}

ncclResult_t finalize(void* ctx) noexcept {
  return edge([&]() -> Status {
    if (ctx != nullptr) net::reclaim(settings_of(ctx).owner);
    return {};
  });
}

ncclResult_t devices(int* count) noexcept {
  return edge([&]() -> Status {
    if (count == nullptr) return fail(Errc::kInvalid, "devices");
    *count = static_cast<int>(net::device_count());
    return {};
  });
}

ncclResult_t listen(int dev, void* handle, void** listen_comm) noexcept {
  return listen_with({}, dev, handle, listen_comm);
}

ncclResult_t listen(void* ctx, int dev, void* handle, void** listen_comm) noexcept {
  return listen_with(settings_of(ctx), dev, handle, listen_comm);
}

ncclResult_t connect(int dev, void* handle, void** send_comm) noexcept {
  return connect_with({}, dev, handle, send_comm);
}

ncclResult_t connect(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** send_comm,
                     ncclNetDeviceHandle_t** /*device*/) noexcept {
  return connect_with({.traffic_class = traffic_class_in(config)}, dev, handle, send_comm);
}

ncclResult_t connect(void* ctx, int dev, void* handle, void** send_comm,
                     ncclNetDeviceHandle_t** /*device*/) noexcept {
  return connect_with(settings_of(ctx), dev, handle, send_comm);
}

ncclResult_t accept(void* listen_comm, void** recv_comm) noexcept {
  return make_object("accept", recv_comm, listen_comm,
                     [&] { return net::accept(*static_cast<Listener*>(listen_comm)); });
}

ncclResult_t reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) noexcept {
  return make_object("regMr", mhandle, comm, [&] {
    return net::register_memory(
        *static_cast<Comm*>(comm),
        {.data = data,
         .size = size,
         .kind = type == NCCL_PTR_HOST ? MemoryKind::kHost : MemoryKind::kCuda});
  });
}

ncclResult_t reg_mr(void* comm, void* data, int size, int type, void** mhandle) noexcept {
  if (size < 0 && mhandle != nullptr) *mhandle = nullptr;
  if (size < 0) return ncclInvalidArgument;
  return reg_mr(comm, data, static_cast<std::size_t>(size), type, mhandle);
}

ncclResult_t reg_mr_dmabuf(void* comm, void* data, std::size_t size, int /*type*/,
                           std::uint64_t offset, int fd, void** mhandle) noexcept {
  return make_object("regMrDmaBuf", mhandle, comm, [&] {
    return net::register_memory(*static_cast<Comm*>(comm), {.data = data,
                                                            .size = size,
                                                            .kind = MemoryKind::kDmabuf,
                                                            .dmabuf_fd = fd,
                                                            .dmabuf_offset = offset});
  });
}

ncclResult_t dereg_mr(void* /*comm*/, void* mhandle) noexcept {
  return unless_null<MemoryHandle>(mhandle, [](auto* memory) { net::deregister_memory(memory); });
}

// NCCL asks a million times a second whether there is credit, or whether a request is done. The
// functions below are rarer or longer, and not inlined, so that the exported functions need no
// stack frame for the short answers.
namespace {

template <Paths kPaths>
[[gnu::noinline]] ncclResult_t post_prepared(SendComm& comm) noexcept {
  return fast_edge([&]() BL_INLINED_LAMBDA { return comm.post_prepared<kPaths>(); });
}

[[gnu::noinline]] ncclResult_t isend_slow(void* comm, void* data, std::size_t size, int tag,
                                          void* mhandle, void** request) noexcept {
  if (request == nullptr) return ncclInvalidArgument;
  *request = nullptr;
  if (comm == nullptr) return ncclInvalidArgument;
  if (mhandle == nullptr) return ncclInvalidArgument;
  if (size > wire::kMaxMessageBytes) return ncclInvalidArgument;
  if (static_cast<Comm*>(comm)->role() != Role::kSend) return ncclInvalidArgument;
  auto& end = *static_cast<SendComm*>(static_cast<Comm*>(comm));
  return fast_edge([&]() BL_INLINED_LAMBDA {
    return end.isend(data, size, tag, *static_cast<const MemoryHandle*>(mhandle), request);
  });
}

}  // namespace

template <Paths kPaths>
[[gnu::noinline]] ncclResult_t post_written(RecvComm& comm) noexcept {
  return fast_edge([&]() BL_INLINED_LAMBDA { return comm.post_written<kPaths>(); });
}
template ncclResult_t post_written<Paths::kOne>(RecvComm& comm) noexcept;
template ncclResult_t post_written<Paths::kSeveral>(RecvComm& comm) noexcept;

namespace {

[[gnu::noinline]] ncclResult_t post_held(SendComm& comm) noexcept {
  return fast_edge([&]() { return comm.post_held(); });
}

[[gnu::noinline]] ncclResult_t isend_grouped(void* comm, void* data, std::size_t size, int tag,
                                             void* mhandle, void** request) noexcept {
  auto& end = *static_cast<SendComm*>(static_cast<Comm*>(comm));
  const auto* memory = static_cast<const MemoryHandle*>(mhandle);
  const SendComm::Begun begun = end.hold_grouped(data, size, tag, memory, request);
  if (begun == SendComm::Begun::kHeld) return ncclSuccess;
  if (begun == SendComm::Begun::kGroup) return post_held(end);
  return isend_slow(comm, data, size, tag, mhandle, request);
}

// The fast isend of a comm with several paths. It leaves everything else to isend_slow().
[[gnu::noinline]] ncclResult_t isend_on_several(void* comm, void* data, std::size_t size, int tag,
                                                void* mhandle, void** request) noexcept {
  Comm& any = *static_cast<Comm*>(comm);
  const auto* memory = static_cast<const MemoryHandle*>(mhandle);
  if (memory != nullptr && any.enter_if_fast(Role::kSend, Paths::kSeveral)) [[likely]] {
    auto& end = static_cast<SendComm&>(any);
    if (end.begin_on_several(data, size, tag, *memory, request)) [[likely]]
      return post_prepared<Paths::kSeveral>(end);
  }
  return isend_slow(comm, data, size, tag, mhandle, request);
}

template <class End>
[[gnu::noinline]] ncclResult_t test_unfinished(Request& request, int* done, int* sizes,
                                               Comm& comm) noexcept {
  auto& end = static_cast<End&>(comm);
  return fast_edge([&]() BL_INLINED_LAMBDA { return Comm::test_fast(end, request, done, sizes); });
}

[[gnu::noinline]] ncclResult_t test_slow(Request& request, int* done, int* sizes,
                                         Comm& comm) noexcept {
  return fast_edge([&]() { return comm.test(request, done, sizes); });
}

}  // namespace

// The other arguments are checked when there is credit.
ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                   void** request) noexcept {
  if (request != nullptr && comm != nullptr) [[likely]] {
    Comm& any = *static_cast<Comm*>(comm);
    const Comm::Credit credit = any.look_for_credit();
    if (credit.state == Comm::Credit::kHasCome) {
      auto& end = static_cast<SendComm&>(any);
      const auto* memory = static_cast<const MemoryHandle*>(mhandle);
      const SendComm::Begun begun = end.begin_isend(credit.order, data, size, tag, memory, request);
      if (begun == SendComm::Begun::kPrepared) return post_prepared<Paths::kOne>(end);
      if (begun == SendComm::Begun::kGrouped)
        return isend_grouped(comm, data, size, tag, mhandle, request);
    } else if (credit.state == Comm::Credit::kNone) {
      *request = nullptr;
      return ncclSuccess;
    }
    return isend_on_several(comm, data, size, tag, mhandle, request);
  }
  return isend_slow(comm, data, size, tag, mhandle, request);
}

// A null request says that nothing has to be flushed: for host memory, and where CUDA promises that
// the GPU sees the writes in order.
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                    void** request) noexcept {
  if (request == nullptr) return ncclInvalidArgument;
  *request = nullptr;
  if (comm == nullptr) return ncclInvalidArgument;
  if (data == nullptr || mhandles == nullptr) return ncclSuccess;
  return fast_edge([&]() {
    if (static_cast<Comm*>(comm)->role() != Role::kReceive) return Errc::kOk;
    const auto count = static_cast<std::uint32_t>(std::clamp(n, 0, int{wire::kMaxReceives}));
    const FlushTargets targets(count, [&](std::uint32_t i) {
      const bool is_empty = sizes != nullptr && sizes[i] == 0;
      return FlushTarget{data[i], is_empty ? nullptr : static_cast<MemoryHandle*>(mhandles[i])};
    });
    return static_cast<RecvComm*>(static_cast<Comm*>(comm))->iflush(targets.all(), request);
  });
}

// Empty buffers are left out: one may begin where its registration ends, so it cannot be read.
void flush_in_test(RecvComm& comm, std::uint32_t count, void** data, const int* sizes,
                   void** mhandles, void* request) {
  const FlushTargets targets(count, [&](std::uint32_t i) {
    return FlushTarget{data[i], sizes[i] == 0 ? nullptr : static_cast<MemoryHandle*>(mhandles[i])};
  });
  comm.flush_before_done(request, targets.all());
}

ncclResult_t test(void* request, int* done, int* sizes) noexcept {
  if (request == nullptr || done == nullptr) return ncclInvalidArgument;
  Request& asked = *static_cast<Request*>(request);
  if (asked.missing != 0) {
    Comm& comm = *asked.comm;
    if (comm.is_fast(Role::kReceive)) return test_unfinished<RecvComm>(asked, done, sizes, comm);
    if (comm.is_fast(Role::kSend)) return test_unfinished<SendComm>(asked, done, sizes, comm);
    return test_slow(asked, done, sizes, comm);
  }
  asked.comm->finish(asked, done, sizes);
  return ncclSuccess;
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
