// SPDX-License-Identifier: Apache-2.0
//
// A version's table, made from the one set of functions: the type of each slot chooses the overload
// that fits, and a slot that a version does not have is not filled. The compiler does all of it.
#pragma once

#include "plugin/abi/calls.h"
#include "plugin/abi/properties.h"

namespace beeline::abi {

// NULL stays what NCCL then does without: kernels that drive the network (getDeviceMr,
// irecvConsumed, which costs a call for each receive), devices that NCCL merges (makeVDevice: it
// would begin at once), hints about what a communicator will do (setNetAttr).
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
  if constexpr (requires { made.finalize; }) made.finalize = finalize;
  return made;
}

}  // namespace beeline::abi
