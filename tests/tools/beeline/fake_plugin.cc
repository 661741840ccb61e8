// SPDX-License-Identifier: Apache-2.0
//
// A network plugin over TCP on the loopback interface, for the tests of `beeline perf`. It exports
// v8 and v12, and refuses calls that violate the contract, such as memory that was not registered
// or too many buffers.
#include "tests/tools/beeline/fake_calls.h"

namespace fake {
namespace {

ncclNet_v8_t v8_table() {
  auto table = middle_slots<ncclNet_v8_t, ncclNetProperties_v8_t>();
  table.regMr = reg_mr;
  table.isend = send<int>;
  table.irecv = receive<int>;
  return table;
}

}  // namespace
}  // namespace fake

extern "C" {
extern const ncclNet_v8_t ncclNetPlugin_v8;
extern const ncclNet_v12_t ncclNetPlugin_v12;

const ncclNet_v8_t ncclNetPlugin_v8 = fake::v8_table();
const ncclNet_v12_t ncclNetPlugin_v12 =
    fake::context_slots<ncclNet_v12_t, ncclNetProperties_v12_t>();
}
