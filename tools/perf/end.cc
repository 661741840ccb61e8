// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/end.h"

#include <fmt/format.h>

namespace beeline::perf {

NetFailure::operator std::string() const {
  const std::string where =
      end == nullptr ? ""
                     : fmt::format(", {}, with {} requests done and {} in flight", end->label(),
                                   end->completed(), end->posted() - end->completed());
  if (complaint != nullptr) return fmt::format("{}{}: {}", call, where, complaint);
  return fmt::format("{}{}: the plugin returned {} ({})", call, where, nccl::to_string(result),
                     static_cast<int>(result));
}

Outcome<void*> End::register_memory(const Buffer& buffer, size_t size) {
  void* const mr = BL_TRY(register_as(buffer, size));
  leases_.emplace(mr, buffer.lease());
  return mr;
}

Outcome<void*> End::register_as(const Buffer& buffer, size_t size) {
  switch (buffer.kind()) {
    case BufferKind::kHost: return BL_TRY(register_pointer(buffer.address(), size, NCCL_PTR_HOST));
    case BufferKind::kPeermem:
      return BL_TRY(register_pointer(buffer.address(), size, NCCL_PTR_CUDA));
    case BufferKind::kDmabuf: return register_dmabuf(buffer, size);
  }
  return nullptr;
}

NetResult<void*> End::register_pointer(void* data, size_t size, int type) {
  void* mr = nullptr;
  const CallWatch::Inside inside(net_.watches->service, "regMr");
  const ncclResult_t result = net_.calls.regMr(comm_, data, size, type, &mr);
  if (result != ncclSuccess) return failed("regMr", result);
  return mr;
}

// As in NCCL, the descriptor is closed when the plugin has returned. A plugin that needs it longer
// has to duplicate it.
Outcome<void*> End::register_dmabuf(const Buffer& buffer, size_t size) {
  const UniqueFd pages = BL_TRY(buffer.export_pages(size));
  void* mr = nullptr;
  const CallWatch::Inside inside(net_.watches->service, "regMrDmaBuf");
  const ncclResult_t result =
      net_.calls.regMrDmaBuf(comm_, buffer.address(), size, NCCL_PTR_CUDA, 0, pages.get(), &mr);
  if (result != ncclSuccess) {
    return fail(std::string(NetFailure{"regMrDmaBuf", result, nullptr, this}));
  }
  return mr;
}

NetResult<bool> End::deregister(void* mr) {
  const CallWatch::Inside inside(net_.watches->service, "deregMr");
  const ncclResult_t result = net_.calls.deregMr(comm_, mr);
  if (result != ncclSuccess) return failed("deregMr", result);
  const auto lease = leases_.find(mr);
  if (lease != leases_.end()) leases_.erase(lease);
  return true;
}

}  // namespace beeline::perf
