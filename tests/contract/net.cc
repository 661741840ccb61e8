// SPDX-License-Identifier: Apache-2.0
//
// The face over each version's table, written once as a template over its number.
#include "tests/contract/net.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "include/nccl/net.h"
#include "tests/contract/call_times.h"
#include "tests/support/must.h"

namespace beeline::test {
namespace {

template <int kVersion>
struct Types;
#define BL_TYPES_OF(version)                                           \
  template <>                                                          \
  struct Types<version> {                                              \
    using Table = ncclNet_v##version##_t;                              \
    using Props = ncclNetProperties_v##version##_t;                    \
    static constexpr const char* kSymbol = "ncclNetPlugin_v" #version; \
  }
BL_TYPES_OF(6);
BL_TYPES_OF(7);
BL_TYPES_OF(8);
BL_TYPES_OF(9);
BL_TYPES_OF(10);
BL_TYPES_OF(11);
BL_TYPES_OF(12);
#undef BL_TYPES_OF

constexpr size_t kMaxParts = 64;

// NCCL's adapters refuse what does not fit, too.
bool fits_int(size_t size) { return static_cast<size_t>(static_cast<int>(size)) == size; }

template <int kVersion>
class NetOf final : public Net {
 public:
  using Table = typename Types<kVersion>::Table;
  using Props = typename Types<kVersion>::Props;

  explicit NetOf(const Table* table) : table_(table) {}

  Abi abi() const override { return static_cast<Abi>(kVersion); }
  const char* name() const override { return table_->name; }

  Slots slots() const override {
    const Table& t = *table_;
    Slots slots{};
    slots.all_required = t.init && t.devices && t.getProperties && t.listen && t.connect &&
                         t.accept && t.regMr && t.deregMr && t.isend && t.irecv && t.iflush &&
                         t.test && t.closeSend && t.closeRecv && t.closeListen;
    slots.reg_mr_dma_buf = t.regMrDmaBuf != nullptr;
    if constexpr (kVersion >= 7) {
      slots.get_device_mr = t.getDeviceMr != nullptr;
      slots.irecv_consumed = t.irecvConsumed != nullptr;
    }
    if constexpr (kVersion >= 9) slots.make_vdevice = t.makeVDevice != nullptr;
    if constexpr (kVersion >= 11) slots.finalize = t.finalize != nullptr;
    return slots;
  }

  ncclResult_t init(void** context, ncclNetCommConfig_v10_t* config,
                    ncclDebugLogger_t logger) override {
    const Timed timed(Call::kInit);
    if constexpr (kVersion >= 11) {
      return table_->init(context, kCommId, config, logger, nullptr);
    } else if constexpr (kVersion == 10) {
      return table_->init(logger, nullptr);
    } else {
      return table_->init(logger);
    }
  }

  void set_connect_config(ncclNetCommConfig_v10_t* config) override { config_ = config; }

  ncclResult_t finalize(void* context) override {
    if constexpr (kVersion >= 11) {
      const Timed timed(Call::kFinalize);
      return table_->finalize(context);
    }
    return ncclSuccess;
  }

  ncclResult_t set_net_attr(void* context, ncclNetAttr_t* attributes) override {
    if constexpr (kVersion >= 11) {
      if (table_->setNetAttr != nullptr) return table_->setNetAttr(context, attributes);
    }
    return ncclSuccess;
  }

  ncclResult_t devices(int* count) override { return table_->devices(count); }

  ncclResult_t properties(int dev, uint8_t fill, Properties* out) override {
    Props props;
    std::memset(&props, fill, sizeof(props));
    const ncclResult_t result = table_->getProperties(dev, &props);
    if (result == ncclSuccess) *out = copied(props);
    return result;
  }

  ncclResult_t listen(void* context, int dev, void* handle, void** listen_comm) override {
    const Timed timed(Call::kListen);
    if constexpr (kVersion >= 11) {
      return table_->listen(context, dev, handle, listen_comm);
    } else {
      return table_->listen(dev, handle, listen_comm);
    }
  }

  ncclResult_t connect(void* context, int dev, void* handle, void** send_comm,
                       ncclNetDeviceHandle_t** device) override {
    const Timed timed(Call::kConnect);
    if constexpr (kVersion >= 11) {
      return table_->connect(context, dev, handle, send_comm, device);
    } else if constexpr (kVersion == 10) {
      return table_->connect(dev, config_, handle, send_comm, device);
    } else if constexpr (kVersion >= 7) {
      return table_->connect(dev, handle, send_comm, device);
    } else {
      return table_->connect(dev, handle, send_comm);
    }
  }

  ncclResult_t accept(void* listen_comm, void** recv_comm,
                      ncclNetDeviceHandle_t** device) override {
    const Timed timed(Call::kAccept);
    if constexpr (kVersion >= 7) {
      return table_->accept(listen_comm, recv_comm, device);
    } else {
      return table_->accept(listen_comm, recv_comm);
    }
  }

  ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) override {
    const Timed timed(Call::kRegMr);
    if constexpr (kVersion >= 8) {
      return table_->regMr(comm, data, size, type, mhandle);
    } else {
      BL_MUST(fits_int(size));
      return table_->regMr(comm, data, static_cast<int>(size), type, mhandle);
    }
  }

  ncclResult_t reg_mr_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle) override {
    return table_->regMrDmaBuf(comm, data, size, type, offset, fd, mhandle);
  }

  ncclResult_t dereg_mr(void* comm, void* mhandle) override {
    const Timed timed(Call::kDeregMr);
    return table_->deregMr(comm, mhandle);
  }

  ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle,
                     void** request) override {
    const Timed timed(Call::kIsend);
    if constexpr (kVersion >= 10) {
      return table_->isend(comm, data, size, tag, mhandle, nullptr, request);
    } else if constexpr (kVersion == 9) {
      return table_->isend(comm, data, size, tag, mhandle, request);
    } else {
      BL_MUST(fits_int(size));
      return table_->isend(comm, data, static_cast<int>(size), tag, mhandle, request);
    }
  }

  ncclResult_t irecv(void* comm, int n, void** data, const size_t* sizes, int* tags,
                     void** mhandles, void** request) override {
    const auto parts = static_cast<size_t>(n);
    BL_MUST(parts <= kMaxParts);
    if constexpr (kVersion >= 9) {
      std::array<size_t, kMaxParts> wide{};
      std::copy_n(sizes, parts, wide.begin());
      const Timed timed(Call::kIrecv);
      if constexpr (kVersion >= 10) {
        std::array<void*, kMaxParts> profiler{};
        return table_->irecv(comm, n, data, wide.data(), tags, mhandles, profiler.data(), request);
      } else {
        return table_->irecv(comm, n, data, wide.data(), tags, mhandles, request);
      }
    } else {
      std::array<int, kMaxParts> narrow{};
      for (size_t i = 0; i < parts; ++i) {
        BL_MUST(fits_int(sizes[i]));
        narrow[i] = static_cast<int>(sizes[i]);
      }
      const Timed timed(Call::kIrecv);
      return table_->irecv(comm, n, data, narrow.data(), tags, mhandles, request);
    }
  }

  ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                      void** request) override {
    const Timed timed(Call::kIflush);
    return table_->iflush(comm, n, data, sizes, mhandles, request);
  }

  ncclResult_t test(void* request, int* done, int* sizes) override {
    const Timed timed(Call::kTest);
    return table_->test(request, done, sizes);
  }

  ncclResult_t close_send(void* comm) override {
    const Timed timed(Call::kCloseSend);
    return table_->closeSend(comm);
  }
  ncclResult_t close_recv(void* comm) override {
    const Timed timed(Call::kCloseRecv);
    return table_->closeRecv(comm);
  }
  ncclResult_t close_listen(void* comm) override {
    const Timed timed(Call::kCloseListen);
    return table_->closeListen(comm);
  }

 private:
  static constexpr uint64_t kCommId = 0x5EED;

  static Properties copied(const Props& props) {
    Properties out{};
    out.name = props.name;
    out.pci_path = props.pciPath;
    out.guid = props.guid;
    out.ptr_support = props.ptrSupport;
    out.speed = props.speed;
    out.port = props.port;
    out.latency = props.latency;
    out.max_comms = props.maxComms;
    out.max_recvs = props.maxRecvs;
    if constexpr (kVersion >= 7) {
      out.device_type = static_cast<int>(props.netDeviceType);
      out.device_version = props.netDeviceVersion;
    }
    if constexpr (kVersion >= 8) out.reg_is_global = props.regIsGlobal;
    if constexpr (kVersion >= 9) {
      out.force_flush = props.forceFlush;
      out.members = members_of(props.vProps.ndevs, props.vProps.devs);
      out.max_p2p_bytes = props.maxP2pBytes;
      out.max_coll_bytes = props.maxCollBytes;
    }
    if constexpr (kVersion >= 11) out.max_multi_request_size = props.maxMultiRequestSize;
    if constexpr (kVersion >= 12) {
      out.rail = props.railId;
      out.plane = props.planeId;
    }
    return out;
  }

  template <size_t kMost>
  static std::vector<int> members_of(int count, const int (&devices)[kMost]) {
    BL_MUST(count >= 0 && static_cast<size_t>(count) <= kMost);
    return {devices, devices + count};
  }

  const Table* table_;
  ncclNetCommConfig_v10_t* config_ = nullptr;
};

template <int kVersion>
std::unique_ptr<Net> load_version(void* library) {
  const void* const symbol = dlsym(library, Types<kVersion>::kSymbol);
  if (symbol == nullptr) throw MustError(std::string("no ") + Types<kVersion>::kSymbol);
  return std::make_unique<NetOf<kVersion>>(
      static_cast<const typename Types<kVersion>::Table*>(symbol));
}

// Never closed: NCCL closes it, and the plugin stays loaded all the same.
void* load_library() {
  const char* const path = std::getenv("BL_TEST_PLUGIN");
  BL_MUST(path != nullptr);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw MustError(dlerror());
  return library;
}

}  // namespace

bool is_exported(Abi abi) {
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(static_cast<int>(abi));
  return dlsym(load_library(), symbol.c_str()) != nullptr;
}

std::unique_ptr<Net> Net::load(Abi abi) {
  void* const library = load_library();
  switch (abi) {
    case Abi::kV6: return load_version<6>(library);
    case Abi::kV7: return load_version<7>(library);
    case Abi::kV8: return load_version<8>(library);
    case Abi::kV9: return load_version<9>(library);
    case Abi::kV10: return load_version<10>(library);
    case Abi::kV11: return load_version<11>(library);
    case Abi::kV12: return load_version<12>(library);
  }
  throw MustError("no such version");
}

std::string to_string(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "ncclSuccess";
    case ncclUnhandledCudaError: return "ncclUnhandledCudaError";
    case ncclSystemError: return "ncclSystemError";
    case ncclInternalError: return "ncclInternalError";
    case ncclInvalidArgument: return "ncclInvalidArgument";
    case ncclInvalidUsage: return "ncclInvalidUsage";
    case ncclRemoteError: return "ncclRemoteError";
    case ncclInProgress: return "ncclInProgress";
    case ncclTimeout: return "ncclTimeout";
  }
  return "result " + std::to_string(static_cast<int>(result));
}

}  // namespace beeline::test
