// SPDX-License-Identifier: Apache-2.0
//
// The boundary between NCCL's C interface and C++: an exported function runs everything that might
// throw in edge() or fast_edge().
#pragma once

#include <new>

#include "common/base/hot.h"
#include "common/base/result.h"
#include "include/nccl/net_common.h"

namespace beeline::abi {

constexpr ncclResult_t to_nccl(Errc code) noexcept {
  switch (code) {
    case Errc::kOk: return ncclSuccess;
    case Errc::kInvalid: return ncclInvalidArgument;
    case Errc::kUnsupported: return ncclInvalidUsage;
    case Errc::kTimeout:
    case Errc::kPeerClosed:
    case Errc::kProtocol: return ncclRemoteError;
    case Errc::kNotFound:
    case Errc::kDenied:
    case Errc::kNoMemory:
    case Errc::kBusy:
    case Errc::kSystem: return ncclSystemError;
    case Errc::kInternal: return ncclInternalError;
  }
  return ncclInternalError;
}

// No exception leaves the plugin. Its own code throws none; those of the standard library end here.
template <class F>
ncclResult_t edge(F&& call) noexcept {
  try {
    const Status status = call();
    return status ? ncclSuccess : to_nccl(status.error().code);
  } catch (const std::bad_alloc&) {
    return ncclSystemError;
  } catch (...) {
    return ncclInternalError;
  }
}

// The same for fast functions, where a code is enough: its cause was logged where it was known.
template <class F>
BL_INLINED ncclResult_t fast_edge(F&& call) noexcept {
  try {
    const Errc code = call();
    if (code == Errc::kOk) [[likely]]
      return ncclSuccess;
    return to_nccl(code);
  } catch (const std::bad_alloc&) {
    return ncclSystemError;
  } catch (...) {
    return ncclInternalError;
  }
}

}  // namespace beeline::abi
