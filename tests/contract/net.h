// SPDX-License-Identifier: Apache-2.0
//
// One face for all versions of the plugin's function table, so that a test is written once. Loads
// the plugin as NCCL does. Arguments that a version has no place for are dropped, as NCCL's own
// adapters do; what a call returns is passed on as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "include/nccl/net_common.h"

namespace beeline::test {

enum class Abi { kV6 = 6, kV7, kV8, kV9, kV10, kV11, kV12 };

// From v11 on, a communicator has a context of its own, and the plugin learns of its end.
inline bool has_context(Abi abi) { return abi >= Abi::kV11; }
// From v9 on, NCCL may say that it can do without a receive's completion.
inline bool has_optional_completion(Abi abi) { return abi >= Abi::kV9; }

// What getProperties wrote. Fields that a version does not have are empty.
struct Properties {
  const char* name;
  const char* pci_path;
  uint64_t guid;
  int ptr_support;
  std::optional<int> reg_is_global;
  std::optional<int> force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_recvs;
  std::optional<int> device_type;
  std::optional<int> device_version;
  std::optional<std::vector<int>> members;  // of the virtual device
  std::optional<size_t> max_p2p_bytes;
  std::optional<size_t> max_coll_bytes;
  std::optional<int> max_multi_request_size;
  std::optional<int> rail;
  std::optional<int> plane;

  bool operator==(const Properties&) const = default;
};

// Which entries of the table are there; empty where the version has no such entry.
struct Slots {
  bool all_required;
  bool reg_mr_dma_buf;
  std::optional<bool> get_device_mr;
  std::optional<bool> irecv_consumed;
  std::optional<bool> make_vdevice;
  std::optional<bool> finalize;
};

bool is_exported(Abi abi);

class Net {
 public:
  // Throws MustError when the file cannot be loaded or has no table of this version.
  static std::unique_ptr<Net> load(Abi abi);
  virtual ~Net() = default;

  virtual Abi abi() const = 0;
  virtual const char* name() const = 0;
  virtual Slots slots() const = 0;

  // *context is written from v11 on. `config` may be null, and is for versions from v11 on.
  virtual ncclResult_t init(void** context, ncclNetCommConfig_v10_t* config,
                            ncclDebugLogger_t logger) = 0;
  // v10: what every connect takes along from now on.
  virtual void set_connect_config(ncclNetCommConfig_v10_t* config) = 0;
  virtual ncclResult_t finalize(void* context) = 0;  // before v11: nothing, and success
  virtual ncclResult_t set_net_attr(void* context, ncclNetAttr_t* attributes) = 0;  // the same
  virtual ncclResult_t devices(int* count) = 0;
  // The structure's bytes are all `fill` before the call.
  virtual ncclResult_t properties(int dev, uint8_t fill, Properties* out) = 0;

  virtual ncclResult_t listen(void* context, int dev, void* handle, void** listen_comm) = 0;
  virtual ncclResult_t connect(void* context, int dev, void* handle, void** send_comm,
                               ncclNetDeviceHandle_t** device) = 0;
  virtual ncclResult_t accept(void* listen_comm, void** recv_comm,
                              ncclNetDeviceHandle_t** device) = 0;
  // A negative int may stand where a version takes ints: as the size_t that it becomes.
  virtual ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) = 0;
  virtual ncclResult_t reg_mr_dma_buf(void* comm, void* data, size_t size, int type,
                                      uint64_t offset, int fd, void** mhandle) = 0;
  virtual ncclResult_t dereg_mr(void* comm, void* mhandle) = 0;
  virtual ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle,
                             void** request) = 0;
  virtual ncclResult_t irecv(void* comm, int n, void** data, const size_t* sizes, int* tags,
                             void** mhandles, void** request) = 0;
  virtual ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                              void** request) = 0;
  virtual ncclResult_t test(void* request, int* done, int* sizes) = 0;
  virtual ncclResult_t close_send(void* comm) = 0;
  virtual ncclResult_t close_recv(void* comm) = 0;
  virtual ncclResult_t close_listen(void* comm) = 0;
};

std::string to_string(ncclResult_t result);

}  // namespace beeline::test

// The call must succeed; the sentence says what it returned.
#define BL_MUST_SUCCEED(expr)                                                            \
  do {                                                                                   \
    if (const ncclResult_t bl_result = (expr); bl_result != ncclSuccess) {               \
      ::beeline::test::must_failed(#expr, __FILE__, __LINE__,                            \
                                   "returned " + ::beeline::test::to_string(bl_result)); \
    }                                                                                    \
  } while (false)
