// SPDX-License-Identifier: Apache-2.0
//
// The functions of the fake plugin's tables, as far as all versions have the same ones. Its
// settings:
//   FAKE_DEVICES=N  the number of devices (2)
//   FAKE_FAULT      see fake_fault.h
//   FAKE_INIT=fail  init returns an error
#pragma once

#include <cstdint>

#include "include/nccl/net.h"
#include "tests/tools/beeline/fake_comm.h"

namespace fake {

struct Listener {
  beeline::UniqueFd fd;
};

ncclResult_t start(ncclDebugLogger_t log);
ncclResult_t devices(int* count);
ncclResult_t listen(int dev, void* handle, void** comm);
ncclResult_t connect(int dev, void* handle, void** comm, ncclNetDeviceHandle_t** on_device);
ncclResult_t accept(void* listener, void** comm, ncclNetDeviceHandle_t** on_device);
ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle);
ncclResult_t dereg_mr(void* comm, void* mhandle);
ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle, void** request);
ncclResult_t irecv(void* comm, const Request& group, void** mhandles, void** request);
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request);
ncclResult_t test(void* opaque, int* done, int* sizes);

template <class T>
ncclResult_t close(void* object) {
  delete static_cast<T*>(object);
  return ncclSuccess;
}

template <class Props>
ncclResult_t describe(int dev, Props* props) {
  static char names[2][16] = {"beeline_fake0", "beeline_fake1"};
  *props = {};
  props->name = names[dev % 2];
  props->guid = 0xFA4E + static_cast<std::uint64_t>(dev);
  props->ptrSupport = NCCL_PTR_HOST;
  props->speed = 10000;
  props->port = 1;
  props->maxComms = 1024;
  props->maxRecvs = kMostParts;
  if constexpr (requires { props->vProps; }) {
    props->vProps.ndevs = 1;
    props->vProps.devs[0] = dev;
    props->maxP2pBytes = props->maxCollBytes = NCCL_MAX_NET_SIZE;
  }
  if constexpr (requires { props->railId; }) {
    props->railId = static_cast<std::int16_t>(dev);
    props->planeId = NCCL_NET_ID_UNDEF;
  }
  return ncclSuccess;
}

// int or size_t, with or without phandles.
template <class Size>
ncclResult_t receive(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                     void** request) {
  if (n < 1 || n > kMostParts) return ncclInvalidArgument;
  Request group;
  group.n = n;
  for (int i = 0; i < n; ++i) {
    group.parts[static_cast<size_t>(i)] = {static_cast<char*>(data[i]),
                                           static_cast<size_t>(sizes[i]), tags[i]};
  }
  return irecv(comm, group, mhandles, request);
}

template <class Size>
ncclResult_t receive_with_phandles(void* comm, int n, void** data, Size* sizes, int* tags,
                                   void** mhandles, void** /*phandles*/, void** request) {
  return receive(comm, n, data, sizes, tags, mhandles, request);
}

template <class Size>
ncclResult_t send(void* comm, void* data, Size size, int tag, void* mhandle, void** request) {
  return isend(comm, data, static_cast<size_t>(size), tag, mhandle, request);
}

inline ncclResult_t send_with_phandle(void* comm, void* data, size_t size, int tag, void* mhandle,
                                      void* /*phandle*/, void** request) {
  return isend(comm, data, size, tag, mhandle, request);
}

// --- v11 and v12 have a context, which the caller must pass back ---

inline int the_context = 0;

inline ncclResult_t init_with_context(void** ctx, uint64_t /*comm_id*/,
                                      ncclNetCommConfig_v12_t* config, ncclDebugLogger_t log,
                                      ncclProfilerCallback_t /*profiler*/) {
  *ctx = &the_context;
  return config == nullptr ? ncclInvalidArgument : start(log);
}

inline ncclResult_t listen_with_context(void* ctx, int dev, void* handle, void** comm) {
  return ctx == &the_context ? listen(dev, handle, comm) : ncclInvalidArgument;
}

inline ncclResult_t connect_with_context(void* ctx, int dev, void* handle, void** comm,
                                         ncclNetDeviceHandle_t** on_device) {
  return ctx == &the_context ? connect(dev, handle, comm, on_device) : ncclInvalidArgument;
}

inline ncclResult_t finalize(void* ctx) {
  return ctx == &the_context ? ncclSuccess : ncclInvalidArgument;
}

// The members that have the same type in all versions. Tables are filled by assignment, because the
// types of other members differ.
template <class Table>
Table common_slots() {
  Table table{};
  table.name = "Fake";
  table.devices = devices;
  table.deregMr = dereg_mr;
  table.iflush = iflush;
  table.test = test;
  table.closeSend = close<Comm>;
  table.closeRecv = close<Comm>;
  table.closeListen = close<Listener>;
  return table;
}

// The other members of v7, v8 and v9, which differ only in the types of sizes.
template <class Table, class Props>
Table middle_slots() {
  Table table = common_slots<Table>();
  table.init = start;
  table.getProperties = describe<Props>;
  table.listen = listen;
  table.connect = connect;
  table.accept = accept;
  return table;
}

// The other members of v11 and v12.
template <class Table, class Props>
Table context_slots() {
  Table table = common_slots<Table>();
  table.init = init_with_context;
  table.getProperties = describe<Props>;
  table.listen = listen_with_context;
  table.connect = connect_with_context;
  table.accept = accept;
  table.regMr = reg_mr;
  table.isend = send_with_phandle;
  table.irecv = receive_with_phandles<size_t>;
  table.finalize = finalize;
  return table;
}

}  // namespace fake
