// SPDX-License-Identifier: Apache-2.0
//
// Version 8, for NCCL 2.20 and later. It is told once that it begins and never that it ends.
#include "include/nccl/net_v8.h"
#include "plugin/abi/calls.h"

namespace beeline::abi {
namespace {

ncclResult_t get_properties(int dev, ncclNetProperties_v8_t* out) noexcept {
  return properties(dev, out, [](auto& props, const Device&) { props.regIsGlobal = 1; });
}

}  // namespace
}  // namespace beeline::abi

extern "C" {

[[gnu::visibility("default")]] extern const ncclNet_v8_t ncclNetPlugin_v8;
const ncclNet_v8_t ncclNetPlugin_v8 = {
    .name = beeline::abi::kName,
    .init = beeline::abi::init,
    .devices = beeline::abi::devices,
    .getProperties = beeline::abi::get_properties,
    .listen = beeline::abi::listen,
    .connect = [](int dev, void* handle, void** comm,
                  ncclNetDeviceHandle_v8_t**) { return beeline::abi::connect(dev, handle, comm); },
    .accept = [](void* listener, void** comm,
                 ncclNetDeviceHandle_v8_t**) { return beeline::abi::accept(listener, comm); },
    .regMr = beeline::abi::reg_mr,
    .regMrDmaBuf = beeline::abi::reg_mr_dmabuf,
    .deregMr = beeline::abi::dereg_mr,
    .isend =
        [](void* comm, void* data, int size, int tag, void* mhandle, void** request) {
          return beeline::abi::isend(comm, data, static_cast<std::size_t>(size), tag, mhandle,
                                     request);
        },
    .irecv = beeline::abi::irecv<int>,
    .iflush = beeline::abi::iflush,
    .test = beeline::abi::test,
    .closeSend = beeline::abi::close_send,
    .closeRecv = beeline::abi::close_recv,
    .closeListen = beeline::abi::close_listen,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
};

}  // extern "C"
