// SPDX-License-Identifier: Apache-2.0
//
// getProperties of every version. All fields are written: NCCL's adapters pass structs that they
// have not initialized.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "plugin/abi/calls.h"
#include "plugin/runtime/net.h"

namespace beeline::abi {

// Up to v8, NCCL has its own limits.
template <class Properties>
void fill_limits(Properties& out) noexcept {
  if constexpr (requires { out.maxP2pBytes; }) {
    out.maxP2pBytes = wire::kMaxMessageBytes;
    out.maxCollBytes = wire::kMaxMessageBytes;
  }
  if constexpr (requires { out.maxMultiRequestSize; }) out.maxMultiRequestSize = 1;
}

template <class Properties>
void fill_place(Properties& out, const net::Properties& device) noexcept {
  if constexpr (requires { out.vProps; }) {
    // A version may have less room than the one in which the device was merged.
    const std::size_t count = std::min(device.members.size(), std::size(out.vProps.devs));
    out.vProps.ndevs = static_cast<int>(count);
    std::ranges::copy(device.members.first(count), out.vProps.devs);
  }
  if constexpr (requires { out.railId; }) {
    out.railId = static_cast<std::int16_t>(device.rail);
    out.planeId = static_cast<std::int16_t>(device.plane);
  }
}

// Fills the fields that the version's struct has.
template <class Properties>
void fill(Properties& out, const net::Properties& device) noexcept {
  out.name = const_cast<char*>(device.name);
  out.pciPath = const_cast<char*>(device.pci_path);
  out.guid = device.guid;
  out.ptrSupport = NCCL_PTR_HOST | (device.takes_pointers ? NCCL_PTR_CUDA : 0) |
                   (device.takes_dmabufs ? NCCL_PTR_DMABUF : 0);
  if constexpr (requires { out.regIsGlobal; }) out.regIsGlobal = device.handles_are_global ? 1 : 0;
  if constexpr (requires { out.forceFlush; }) out.forceFlush = device.force_flush ? 1 : 0;
  out.speed = device.speed_mbps;
  out.port = device.port;
  out.latency = 0;  // NCCL then takes its own figure for a network
  out.maxComms = 1 << 16;
  out.maxRecvs = wire::kMaxReceives;
  if constexpr (requires { out.netDeviceType; }) {
    out.netDeviceType = NCCL_NET_DEVICE_HOST;
    out.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  fill_place(out, device);
  fill_limits(out);
}

template <class Properties>
ncclResult_t get_properties(int dev, Properties* out) noexcept {
  return edge([&]() -> Status {
    if (out == nullptr) return fail(Errc::kInvalid, "getProperties");
    const net::Properties device = BL_TRY(net::properties(dev));
    *out = {};
    fill(*out, device);
    return {};
  });
}

}  // namespace beeline::abi
