// SPDX-License-Identifier: Apache-2.0
//
// Version 12, for NCCL 2.30 and later: one init for each communicator, and an end for each.
#include "include/nccl/net_v12.h"
#include "plugin/abi/calls.h"

namespace beeline::abi {
namespace {

ncclResult_t get_properties(int dev, ncclNetProperties_v12_t* out) noexcept {
  return properties(dev, out, [](auto& props, const Device& device) {
    props.regIsGlobal = 1;
    props.vProps = {.ndevs = 1, .devs = {device.index}};
    props.maxP2pBytes = wire::kMaxMessageBytes;
    props.maxCollBytes = wire::kMaxMessageBytes;
    props.maxMultiRequestSize = 1;
    props.railId = static_cast<std::int16_t>(device.rail);
    props.planeId = static_cast<std::int16_t>(device.plane);
  });
}

}  // namespace
}  // namespace beeline::abi

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v12_t ncclNetPlugin_v12;
const ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = beeline::abi::kName,
    .init =
        [](void** ctx, std::uint64_t, ncclNetCommConfig_v12_t*, ncclDebugLogger_t logger,
           ncclProfilerCallback_t) {
          if (ctx != nullptr) *ctx = nullptr;
          return beeline::abi::init(logger);
        },
    .devices = beeline::abi::devices,
    .getProperties = beeline::abi::get_properties,
    .listen = [](void*, int dev, void* handle,
                 void** comm) { return beeline::abi::listen(dev, handle, comm); },
    .connect = [](void*, int dev, void* handle, void** comm,
                  ncclNetDeviceHandle_v12_t**) { return beeline::abi::connect(dev, handle, comm); },
    .accept = [](void* listener, void** comm,
                 ncclNetDeviceHandle_v12_t**) { return beeline::abi::accept(listener, comm); },
    .regMr = beeline::abi::reg_mr,
    .regMrDmaBuf = beeline::abi::reg_mr_dmabuf,
    .deregMr = beeline::abi::dereg_mr,
    .isend =
        [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void*,
           void** request) { return beeline::abi::isend(comm, data, size, tag, mhandle, request); },
    .irecv =
        [](void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles, void**,
           void** request) {
          return beeline::abi::irecv(comm, n, data, sizes, tags, mhandles, request);
        },
    .iflush = beeline::abi::iflush,
    .test = beeline::abi::test,
    .closeSend = beeline::abi::close_send,
    .closeRecv = beeline::abi::close_recv,
    .closeListen = beeline::abi::close_listen,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
    .makeVDevice = nullptr,  // NCCL would merge ports at once
    .finalize = [](void*) { return ncclSuccess; },
    .setNetAttr = nullptr,
};

}  // extern "C"
