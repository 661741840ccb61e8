// SPDX-License-Identifier: Apache-2.0
//
// The tables of all versions of NCCL's interface. They are made from one set of functions: the type
// of each slot chooses the overload, and functions that the version does not have are left out. All
// of it happens at compile time.
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "common/base/log.h"
#include "include/nccl/net_v10.h"
#include "include/nccl/net_v11.h"
#include "include/nccl/net_v12.h"
#include "include/nccl/net_v6.h"
#include "include/nccl/net_v7.h"
#include "include/nccl/net_v8.h"
#include "include/nccl/net_v9.h"
#include "plugin/abi/calls.h"
#include "plugin/abi/edge.h"
#include "plugin/abi/properties.h"
#include "plugin/runtime/net.h"

namespace beeline::abi {
namespace {

// makeVDevice: NCCL merges devices into a new one. The versions differ in the number of devices for
// which their struct has room.
template <class VDevice>
ncclResult_t make_vdevice(int* dev, VDevice* wanted) noexcept {
  return edge([&]() -> Status {
    if (dev == nullptr || wanted == nullptr) return fail(Errc::kInvalid, "makeVDevice");
    constexpr std::size_t kRoom = std::extent_v<decltype(VDevice::devs)>;
    const auto count = static_cast<std::size_t>(wanted->ndevs);
    if (wanted->ndevs < 0 || count > kRoom) {
      BL_WARN("%d devices cannot be merged: this version of NCCL's interface merges at most %zu",
              wanted->ndevs, kRoom);
      return fail(Errc::kInvalid, "makeVDevice");
    }
    *dev = BL_TRY(net::merge(std::span<const int>(wanted->devs, count)));
    return {};
  });
}

// Optional functions stay NULL, and NCCL does without them: network operations by GPU kernels
// (getDeviceMr; irecvConsumed, which would cost a call for each receive), hints about what a
// communicator will do (setNetAttr). Because of makeVDevice, NCCL merges the ports of each card
// unless NCCL_NET_MERGE_LEVEL says otherwise.
template <class Table>
consteval Table table() {
  Table made{};
  made.name = kName;
  made.init = init;
  if constexpr (std::same_as<Table, ncclNet_v11_t>) made.init = init_v11;
  made.devices = devices;
  made.getProperties = get_properties;
  made.listen = listen;
  made.connect = connect;
  made.accept = accept;
  made.regMr = reg_mr;
  made.regMrDmaBuf = reg_mr_dmabuf;
  made.deregMr = dereg_mr;
  made.isend = isend;
  made.irecv = irecv;
  made.iflush = iflush;
  made.test = test;
  made.closeSend = close_send;
  made.closeRecv = close_recv;
  made.closeListen = close_listen;
  if constexpr (requires { made.makeVDevice; }) made.makeVDevice = make_vdevice;
  if constexpr (requires { made.finalize; }) made.finalize = finalize;
  return made;
}

}  // namespace
}  // namespace beeline::abi

#pragma GCC visibility push(default)
extern "C" {

using beeline::abi::table;

// NCCL 2.13 and later. All sizes are ints, and there are no virtual devices.
extern const ncclNet_v6_t ncclNetPlugin_v6;
constinit const ncclNet_v6_t ncclNetPlugin_v6 = table<ncclNet_v6_t>();

// 2.19: device handles that transports on the GPU would need.
extern const ncclNet_v7_t ncclNetPlugin_v7;
constinit const ncclNet_v7_t ncclNetPlugin_v7 = table<ncclNet_v7_t>();

// 2.20: a registration may be larger than an int. As in earlier versions, init is called once and
// there is no finalize.
extern const ncclNet_v8_t ncclNetPlugin_v8;
constinit const ncclNet_v8_t ncclNetPlugin_v8 = table<ncclNet_v8_t>();

// 2.24: all sizes are size_t, and NCCL may say that it does not need the completion of a receive.
extern const ncclNet_v9_t ncclNetPlugin_v9;
constinit const ncclNet_v9_t ncclNetPlugin_v9 = table<ncclNet_v9_t>();

// 2.26: a traffic class for each connection, and handles for a profiler.
extern const ncclNet_v10_t ncclNetPlugin_v10;
constinit const ncclNet_v10_t ncclNetPlugin_v10 = table<ncclNet_v10_t>();

// 2.28: init and finalize for each communicator.
extern const ncclNet_v11_t ncclNetPlugin_v11;
constinit const ncclNet_v11_t ncclNetPlugin_v11 = table<ncclNet_v11_t>();

// 2.30: rails, planes and larger virtual devices.
extern const ncclNet_v12_t ncclNetPlugin_v12;
constinit const ncclNet_v12_t ncclNetPlugin_v12 = table<ncclNet_v12_t>();

}  // extern "C"
#pragma GCC visibility pop
