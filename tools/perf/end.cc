// SPDX-License-Identifier: Apache-2.0
//
// See end.h and net_failure.h.
#include "tools/perf/end.h"

#include <fmt/format.h>

namespace beeline::perf {

const char* to_string(ncclResult_t result) {
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

NetFailure::operator std::string() const {
  const std::string where = end == nullptr
                                ? ""
                                : fmt::format(", {}, after {} done and {} in flight", end->label(),
                                              end->completed(), end->posted() - end->completed());
  if (complaint != nullptr) return fmt::format("{}{}: {}", call, where, complaint);
  return fmt::format("{}{}: the plugin returned {} ({})", call, where, to_string(result),
                     static_cast<int>(result));
}

NetResult<void*> End::register_memory(void* data, size_t size) {
  void* mr = nullptr;
  const CallWatch::Inside inside(net_.watches->service, "regMr");
  const ncclResult_t result = net_.calls.regMr(comm_, data, size, NCCL_PTR_HOST, &mr);
  if (result != ncclSuccess) return failed("regMr", result);
  return mr;
}

NetResult<bool> End::deregister(void* mr) {
  const CallWatch::Inside inside(net_.watches->service, "deregMr");
  const ncclResult_t result = net_.calls.deregMr(comm_, mr);
  if (result != ncclSuccess) return failed("deregMr", result);
  return true;
}

}  // namespace beeline::perf
