// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/net.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/support/must.h"

namespace beeline::test {
namespace {

constexpr uint64_t kCommId = 0x5EED;
constexpr size_t kMaxParts = 64;

Outcome<nccl::Net> load_table(Abi abi) {
  const char* const path = std::getenv("BL_TEST_PLUGIN");
  BL_MUST(path != nullptr);
  return nccl::load_plugin(path, static_cast<int>(abi));
}

template <class Table>
Slots slots_of(const Table& t) {
  Slots slots{};
  slots.all_required = t.init && t.devices && t.getProperties && t.listen && t.connect &&
                       t.accept && t.regMr && t.deregMr && t.isend && t.irecv && t.iflush &&
                       t.test && t.closeSend && t.closeRecv && t.closeListen;
  slots.reg_mr_dma_buf = t.regMrDmaBuf != nullptr;
  if constexpr (requires { t.getDeviceMr; }) slots.get_device_mr = t.getDeviceMr != nullptr;
  if constexpr (requires { t.irecvConsumed; }) slots.irecv_consumed = t.irecvConsumed != nullptr;
  if constexpr (requires { t.makeVDevice; }) slots.make_vdevice = t.makeVDevice != nullptr;
  if constexpr (requires { t.finalize; }) slots.finalize = t.finalize != nullptr;
  return slots;
}

template <size_t kMost>
std::vector<int> members_of(int count, const int (&devices)[kMost]) {
  BL_MUST(count >= 0 && static_cast<size_t>(count) <= kMost);
  return {devices, devices + count};
}

// The fields that this version has, as the plugin wrote them.
template <int kVersion>
Properties copied(const typename nccl::Version<kVersion>::Properties& props) {
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

}  // namespace

bool is_exported(Abi abi) { return load_table(abi).has_value(); }

std::unique_ptr<Net> Net::load(Abi abi) {
  Outcome<nccl::Net> net = load_table(abi);
  if (!net) throw MustError(net.error().text);
  return std::unique_ptr<Net>(new Net(*std::move(net)));
}

Slots Net::slots() const {
  return nccl::with_version(net_.abi, [this](auto version) {
    return slots_of(*static_cast<const typename nccl::Version<version>::Table*>(net_.table));
  });
}

ncclResult_t Net::init(void** context, ncclNetCommConfig_v10_t* config, ncclDebugLogger_t logger) {
  void* none = nullptr;  // before v11
  return net_.calls.init(has_context(abi()) ? context : &none, kCommId, config, logger, nullptr);
}

ncclResult_t Net::finalize(void* context) {
  if (!has_context(abi())) return ncclSuccess;
  return net_.calls.finalize(context);
}

ncclResult_t Net::set_net_attr(void* context, ncclNetAttr_t* attributes) {
  if (net_.calls.setNetAttr == nullptr) return ncclSuccess;
  return net_.calls.setNetAttr(context, attributes);
}

// Called without the adapter, which would give each field a value.
ncclResult_t Net::properties(int dev, uint8_t fill, Properties* out) {
  return nccl::with_version(net_.abi, [&](auto version) {
    typename nccl::Version<version>::Properties props;
    std::memset(&props, fill, sizeof(props));
    const auto& table = *static_cast<const typename nccl::Version<version>::Table*>(net_.table);
    const ncclResult_t result = table.getProperties(dev, &props);
    if (result == ncclSuccess) *out = copied<version>(props);
    return result;
  });
}

// Called without the adapter, which would refuse what the version has no room for.
ncclResult_t Net::make_vdevice(int count, const std::vector<int>& members, int* dev) {
  return nccl::with_version(net_.abi, [&](auto version) {
    const auto& table = *static_cast<const typename nccl::Version<version>::Table*>(net_.table);
    if constexpr (requires { table.makeVDevice; }) {
      decltype(nccl::Version<version>::Properties::vProps) wanted{};
      wanted.ndevs = count;
      const size_t room = std::size(wanted.devs);
      std::copy_n(members.begin(), std::min(members.size(), room), wanted.devs);
      return table.makeVDevice(dev, &wanted);
    } else {
      return ncclInvalidUsage;
    }
  });
}

ncclResult_t Net::listen(void* context, int dev, void* handle, void** listen_comm) {
  return net_.calls.listen(context, dev, handle, listen_comm);
}

ncclResult_t Net::connect(void* context, int dev, void* handle, void** send_comm,
                          ncclNetDeviceHandle_t** device) {
  if (abi() == Abi::kV10) context = connect_config_;
  return net_.calls.connect(context, dev, handle, send_comm, device);
}

ncclResult_t Net::accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_t** device) {
  return net_.calls.accept(listen_comm, recv_comm, device);
}

ncclResult_t Net::reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) {
  BL_MUST(abi() >= Abi::kV8 || nccl::fits_int(size));
  return net_.calls.regMr(comm, data, size, type, mhandle);
}

ncclResult_t Net::reg_mr_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset,
                                 int fd, void** mhandle) {
  return net_.calls.regMrDmaBuf(comm, data, size, type, offset, fd, mhandle);
}

ncclResult_t Net::dereg_mr(void* comm, void* mhandle) { return net_.calls.deregMr(comm, mhandle); }

ncclResult_t Net::isend(void* comm, void* data, size_t size, int tag, void* mhandle,
                        void** request) {
  BL_MUST(abi() >= Abi::kV9 || nccl::fits_int(size));
  return net_.calls.isend(comm, data, size, tag, mhandle, nullptr, request);
}

ncclResult_t Net::irecv(void* comm, int n, void** data, const size_t* sizes, int* tags,
                        void** mhandles, void** request) {
  const auto parts = static_cast<size_t>(n);
  BL_MUST(parts <= kMaxParts);
  std::array<size_t, kMaxParts> own_sizes{};
  for (size_t i = 0; i < parts; ++i) {
    BL_MUST(abi() >= Abi::kV9 || nccl::fits_int(sizes[i]));
    own_sizes[i] = sizes[i];
  }
  std::array<void*, kMaxParts> profiler{};
  return net_.calls.irecv(comm, n, data, own_sizes.data(), tags, mhandles, profiler.data(),
                          request);
}

ncclResult_t Net::iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                         void** request) {
  return net_.calls.iflush(comm, n, data, sizes, mhandles, request);
}

ncclResult_t Net::test(void* request, int* done, int* sizes) {
  return net_.calls.test(request, done, sizes);
}

ncclResult_t Net::close_send(void* comm) { return net_.calls.closeSend(comm); }

ncclResult_t Net::close_recv(void* comm) { return net_.calls.closeRecv(comm); }

ncclResult_t Net::close_listen(void* comm) { return net_.calls.closeListen(comm); }

}  // namespace beeline::test
