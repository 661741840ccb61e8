// SPDX-License-Identifier: Apache-2.0
//
// Makes a version's table from the one set of functions: the type of each slot chooses the
// overload, and functions that the version does not have are left out. All of it happens at compile
// time.
#pragma once

#include "plugin/abi/calls.h"
#include "plugin/abi/properties.h"
#include "plugin/abi/virtual_device.h"

namespace beeline::abi {

// Optional functions stay NULL, and NCCL does without them: network operations by GPU kernels
// (getDeviceMr; irecvConsumed, which would cost a call for each receive), hints about what a
// communicator will do (setNetAttr). Because of makeVDevice, NCCL merges the ports of each card
// unless NCCL_NET_MERGE_LEVEL says otherwise.
template <class Table>
consteval Table table() {
  Table made{};
  made.name = kName;
  made.init = init;
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

}  // namespace beeline::abi
