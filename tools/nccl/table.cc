// SPDX-License-Identifier: Apache-2.0
//
// Each function shows by `if constexpr` since which version a parameter exists.
#include "tools/nccl/table.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <type_traits>

namespace beeline::nccl {
namespace {

template <int V>
class Adapter {
  using Table = typename Version<V>::Table;
  using Props = typename Version<V>::Properties;
  using DeviceHandle = ncclNetDeviceHandle_v12_t;

 public:
  static ncclNet_v12_t adapt(const Table* table) {
    native_.store(table, std::memory_order_relaxed);
    ncclNet_v12_t calls{};
    calls.name = table->name;
    calls.init = init;
    calls.devices = table->devices;
    calls.getProperties = get_properties;
    calls.listen = listen;
    calls.connect = connect;
    calls.accept = accept;
    calls.regMr = reg_mr;
    calls.regMrDmaBuf = table->regMrDmaBuf;
    calls.deregMr = table->deregMr;
    calls.isend = isend;
    calls.irecv = irecv;
    calls.iflush = table->iflush;
    calls.test = table->test;
    calls.closeSend = table->closeSend;
    calls.closeRecv = table->closeRecv;
    calls.closeListen = table->closeListen;
    calls.finalize = finalize;
    if constexpr (V >= 7) calls.getDeviceMr = table->getDeviceMr;
    if constexpr (V >= 7) calls.irecvConsumed = table->irecvConsumed;
    if constexpr (V >= 9)
      calls.makeVDevice = table->makeVDevice == nullptr ? nullptr : make_vdevice;
    if constexpr (V >= 11) calls.setNetAttr = table->setNetAttr;
    return calls;
  }

 private:
  static ncclResult_t init(void** ctx, uint64_t comm_id, ncclNetCommConfig_v12_t* config,
                           ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
    if constexpr (V >= 11) {
      return native().init(ctx, comm_id, config, log, profiler);
    } else if constexpr (V == 10) {
      *ctx = config;
      return native().init(log, profiler);
    } else {
      return native().init(log);
    }
  }

  static ncclResult_t get_properties(int dev, ncclNetProperties_v12_t* out) {
    Props props{};
    const ncclResult_t result = native().getProperties(dev, &props);
    if (result != ncclSuccess) return result;
    *out = {};
    out->name = props.name;
    out->pciPath = props.pciPath;
    out->guid = props.guid;
    out->ptrSupport = props.ptrSupport;
    out->speed = props.speed;
    out->port = props.port;
    out->latency = props.latency;
    out->maxComms = props.maxComms;
    out->maxRecvs = props.maxRecvs;
    out->vProps.ndevs = 1;
    out->vProps.devs[0] = dev;
    out->maxP2pBytes = NCCL_MAX_NET_SIZE;
    out->maxCollBytes = NCCL_MAX_NET_SIZE / 2;
    out->maxMultiRequestSize = 1;
    out->railId = NCCL_NET_ID_UNDEF;
    out->planeId = NCCL_NET_ID_UNDEF;
    if constexpr (V >= 7) out->netDeviceType = props.netDeviceType;
    if constexpr (V >= 7) out->netDeviceVersion = props.netDeviceVersion;
    if constexpr (V >= 8) out->regIsGlobal = props.regIsGlobal;
    if constexpr (V >= 9) out->forceFlush = props.forceFlush;
    if constexpr (V >= 9) copy_virtual_device(props, out);
    if constexpr (V >= 11) out->maxMultiRequestSize = props.maxMultiRequestSize;
    if constexpr (V >= 12) out->railId = props.railId;
    if constexpr (V >= 12) out->planeId = props.planeId;
    return ncclSuccess;
  }

  static void copy_virtual_device(const Props& props, ncclNetProperties_v12_t* out) {
    constexpr int kRoom = std::extent_v<decltype(Props::vProps.devs)>;
    out->vProps.ndevs = props.vProps.ndevs;
    for (int i = 0; i < props.vProps.ndevs && i < kRoom; ++i) {
      out->vProps.devs[i] = props.vProps.devs[i];
    }
    out->maxP2pBytes = props.maxP2pBytes;
    out->maxCollBytes = props.maxCollBytes;
  }

  static ncclResult_t make_vdevice(int* dev, ncclNetVDeviceProps_v12_t* wanted) {
    decltype(Props::vProps) narrow{};
    constexpr int kRoom = std::extent_v<decltype(narrow.devs)>;
    if (wanted->ndevs < 0 || wanted->ndevs > kRoom) return ncclInternalError;
    narrow.ndevs = wanted->ndevs;
    for (int i = 0; i < wanted->ndevs; ++i) narrow.devs[i] = wanted->devs[i];
    return native().makeVDevice(dev, &narrow);
  }

  static ncclResult_t listen(void* ctx, int dev, void* handle, void** listen_comm) {
    if constexpr (V >= 11) {
      return native().listen(ctx, dev, handle, listen_comm);
    } else {
      return native().listen(dev, handle, listen_comm);
    }
  }

  static ncclResult_t connect(void* ctx, int dev, void* handle, void** send_comm,
                              DeviceHandle** send_dev) {
    if constexpr (V >= 11) {
      return native().connect(ctx, dev, handle, send_comm, send_dev);
    } else if constexpr (V == 10) {
      return native().connect(dev, static_cast<ncclNetCommConfig_v10_t*>(ctx), handle, send_comm,
                              send_dev);
    } else if constexpr (V >= 7) {
      return native().connect(dev, handle, send_comm, send_dev);
    } else {
      return native().connect(dev, handle, send_comm);
    }
  }

  static ncclResult_t accept(void* listen_comm, void** recv_comm, DeviceHandle** recv_dev) {
    if constexpr (V >= 7) {
      return native().accept(listen_comm, recv_comm, recv_dev);
    } else {
      return native().accept(listen_comm, recv_comm);
    }
  }

  static ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) {
    if constexpr (V >= 8) {
      return native().regMr(comm, data, size, type, mhandle);
    } else {
      if (!fits_int(size)) return ncclInvalidArgument;
      return native().regMr(comm, data, static_cast<int>(size), type, mhandle);
    }
  }

  static ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle,
                            void* phandle, void** request) {
    if constexpr (V >= 10) {
      return native().isend(comm, data, size, tag, mhandle, phandle, request);
    } else if constexpr (V == 9) {
      return native().isend(comm, data, size, tag, mhandle, request);
    } else {
      if (!fits_int(size)) return ncclInvalidArgument;
      return native().isend(comm, data, static_cast<int>(size), tag, mhandle, request);
    }
  }

  static ncclResult_t irecv(void* comm, int n, void** data, size_t* sizes, int* tags,
                            void** mhandles, void** phandles, void** request) {
    if constexpr (V >= 10) {
      return native().irecv(comm, n, data, sizes, tags, mhandles, phandles, request);
    } else if constexpr (V == 9) {
      return native().irecv(comm, n, data, sizes, tags, mhandles, request);
    } else {
      std::array<int, 64> narrow;  // NOLINT(cppcoreguidelines-pro-type-member-init): n are written
      if (n < 0 || static_cast<size_t>(n) > narrow.size()) return ncclInvalidArgument;
      for (int i = 0; i < n; ++i) {
        if (!fits_int(sizes[i])) return ncclInvalidArgument;
        narrow[static_cast<size_t>(i)] = static_cast<int>(sizes[i]);
      }
      return native().irecv(comm, n, data, narrow.data(), tags, mhandles, request);
    }
  }

  static ncclResult_t finalize(void* ctx) {
    if constexpr (V >= 11) {
      return native().finalize(ctx);
    } else {
      return ncclSuccess;  // the plugin has no such function
    }
  }

  static const Table& native() noexcept { return *native_.load(std::memory_order_relaxed); }

  // Atomic because threads may load the same plugin at once. The table itself is constant.
  inline static std::atomic<const Table*> native_ = nullptr;
};

}  // namespace

std::string table_symbol(int abi) { return fmt::format("ncclNetPlugin_v{}", abi); }

ncclNet_v12_t adapt_table(int abi, const void* table) {
  return with_version(abi, [table](auto number) {
    using Table = typename Version<number>::Table;
    if constexpr (number == kNewestAbi) {
      return *static_cast<const Table*>(table);
    } else {
      return Adapter<number>::adapt(static_cast<const Table*>(table));
    }
  });
}

const char* to_string(ncclResult_t result) noexcept {
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
  return "an unknown result";
}

}  // namespace beeline::nccl
