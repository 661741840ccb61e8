// SPDX-License-Identifier: Apache-2.0
//
// The plugin as a test calls it, with one set of functions for all versions of its table. An
// argument that a version does not have is dropped, as in NCCL's own adapters. The result of a call
// is returned unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "include/nccl/net_common.h"
#include "tools/nccl/loader.h"

namespace beeline::test {

enum class Abi { kV6 = 6, kV7, kV8, kV9, kV10, kV11, kV12 };
// All tables are made from one set of functions, so what is behind these is tested with one
// version.
inline constexpr Abi kNewest = Abi::kV12;

// From v11 on, a communicator has a context of its own, and the plugin learns of its end.
inline bool has_context(Abi abi) { return abi >= Abi::kV11; }
// From v9 on, NCCL may say that it can do without a receive's completion.
inline bool has_optional_completion(Abi abi) { return abi >= Abi::kV9; }

// From v9 on, NCCL may merge devices: at most so many.
inline bool has_vdevices(Abi abi) { return abi >= Abi::kV9; }
inline int most_members(Abi abi) {
  return abi >= Abi::kV12 ? NCCL_NET_MAX_DEVS_PER_NIC_V12 : NCCL_NET_MAX_DEVS_PER_NIC_V9;
}

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
  // Loads the plugin that BL_TEST_PLUGIN names. Throws MustError when the file cannot be loaded or
  // has no table of this version.
  static std::unique_ptr<Net> load(Abi abi);

  Abi abi() const { return static_cast<Abi>(net_.abi); }
  const char* name() const { return net_.calls.name; }
  Slots slots() const;

  // *context is written from v11 on. `config` may be null, and is for versions from v11 on.
  ncclResult_t init(void** context, ncclNetCommConfig_v10_t* config, ncclDebugLogger_t logger);
  // v10: the configuration that every connect passes from now on.
  void set_connect_config(ncclNetCommConfig_v10_t* config) { connect_config_ = config; }
  ncclResult_t finalize(void* context);  // before v11: nothing, and success
  ncclResult_t set_net_attr(void* context, ncclNetAttr_t* attributes);  // the same
  ncclResult_t devices(int* count) { return net_.calls.devices(count); }
  // All bytes of the plugin's structure are `fill` before the call.
  ncclResult_t properties(int dev, uint8_t fill, Properties* out);

  // From v9 on. `count` may be wrong; of `members`, as many are passed as the version has room for.
  ncclResult_t make_vdevice(int count, const std::vector<int>& members, int* dev);

  ncclResult_t listen(void* context, int dev, void* handle, void** listen_comm);
  ncclResult_t connect(void* context, int dev, void* handle, void** send_comm,
                       ncclNetDeviceHandle_t** device);
  ncclResult_t accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_t** device);
  // Where a version takes ints, the size that a negative int becomes is allowed, too.
  ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle);
  ncclResult_t reg_mr_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  ncclResult_t dereg_mr(void* comm, void* mhandle);
  ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle, void** request);
  ncclResult_t irecv(void* comm, int n, void** data, const size_t* sizes, int* tags,
                     void** mhandles, void** request);
  ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request);
  ncclResult_t test(void* request, int* done, int* sizes);
  ncclResult_t close_send(void* comm);
  ncclResult_t close_recv(void* comm);
  ncclResult_t close_listen(void* comm);

 private:
  explicit Net(nccl::Net net) : net_(std::move(net)) {}

  nccl::Net net_;
  ncclNetCommConfig_v10_t* connect_config_ = nullptr;
};

}  // namespace beeline::test

// The call must succeed; the sentence says what it returned.
#define BL_MUST_SUCCEED(expr)                                                \
  do {                                                                       \
    if (const ncclResult_t bl_result = (expr); bl_result != ncclSuccess) {   \
      ::beeline::test::must_failed(                                          \
          #expr, __FILE__, __LINE__,                                         \
          std::string("returned ") + ::beeline::nccl::to_string(bl_result)); \
    }                                                                        \
  } while (false)
