// SPDX-License-Identifier: Apache-2.0
//
// The other versions of the fake plugin. A second library exports all of them.
#include "tests/tools/beeline/fake_calls.h"

namespace fake {
namespace {

ncclResult_t connect_v6(int dev, void* handle, void** comm) {
  return connect(dev, handle, comm, nullptr);
}
ncclResult_t accept_v6(void* listener, void** comm) { return accept(listener, comm, nullptr); }
ncclResult_t reg_mr_int(void* comm, void* data, int size, int type, void** mhandle) {
  return reg_mr(comm, data, static_cast<size_t>(size), type, mhandle);
}

ncclNet_v6_t v6_table() {
  auto table = common_slots<ncclNet_v6_t>();
  table.init = start;
  table.getProperties = describe<ncclNetProperties_v6_t>;
  table.listen = listen;
  table.connect = connect_v6;
  table.accept = accept_v6;
  table.regMr = reg_mr_int;
  table.isend = send<int>;
  table.irecv = receive<int>;
  return table;
}

ncclNet_v7_t v7_table() {
  auto table = middle_slots<ncclNet_v7_t, ncclNetProperties_v7_t>();
  table.regMr = reg_mr_int;
  table.isend = send<int>;
  table.irecv = receive<int>;
  return table;
}

ncclNet_v9_t v9_table() {
  auto table = middle_slots<ncclNet_v9_t, ncclNetProperties_v9_t>();
  table.regMr = reg_mr;
  table.isend = send<size_t>;
  table.irecv = receive<size_t>;
  return table;
}

ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t /*profiler*/) {
  return start(log);
}
ncclResult_t connect_v10(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** comm,
                         ncclNetDeviceHandle_t** on_device) {
  return config == nullptr ? ncclInvalidArgument : connect(dev, handle, comm, on_device);
}

ncclNet_v10_t v10_table() {
  auto table = common_slots<ncclNet_v10_t>();
  table.init = init_v10;
  table.getProperties = describe<ncclNetProperties_v10_t>;
  table.listen = listen;
  table.connect = connect_v10;
  table.accept = accept;
  table.regMr = reg_mr;
  table.isend = send_with_phandle;
  table.irecv = receive_with_phandles<size_t>;
  return table;
}

}  // namespace
}  // namespace fake

extern "C" {
extern const ncclNet_v6_t ncclNetPlugin_v6;
extern const ncclNet_v7_t ncclNetPlugin_v7;
extern const ncclNet_v9_t ncclNetPlugin_v9;
extern const ncclNet_v10_t ncclNetPlugin_v10;
extern const ncclNet_v11_t ncclNetPlugin_v11;

const ncclNet_v6_t ncclNetPlugin_v6 = fake::v6_table();
const ncclNet_v7_t ncclNetPlugin_v7 = fake::v7_table();
const ncclNet_v9_t ncclNetPlugin_v9 = fake::v9_table();
const ncclNet_v10_t ncclNetPlugin_v10 = fake::v10_table();
const ncclNet_v11_t ncclNetPlugin_v11 =
    fake::context_slots<ncclNet_v11_t, ncclNetProperties_v11_t>();
}
