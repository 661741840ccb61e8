// SPDX-License-Identifier: Apache-2.0
//
// Prints attributes under CUDA's own names, in capitals, so that they can be looked up.
#include "tools/gpu_check/card.h"

#include <fmt/format.h>

#include <optional>

namespace beeline::gpu {
namespace {

using cuda_abi::DeviceAttribute;

// The value, or a text that the driver does not know the attribute.
std::string number(const Cuda& cuda, DeviceAttribute attribute) {
  const std::optional<int> value = cuda.attribute(attribute);
  return value ? std::to_string(*value) : "not known to this driver";
}

std::string yes_or_no(const Cuda& cuda, DeviceAttribute attribute) {
  const std::optional<int> value = cuda.attribute(attribute);
  if (!value) return "not known to this driver";
  return *value != 0 ? "yes" : "no";
}

std::string compute_mode(const Cuda& cuda) {
  constexpr int kDefault = 0;
  constexpr int kProhibited = 2;
  constexpr int kExclusiveProcess = 3;
  const std::optional<int> mode = cuda.attribute(DeviceAttribute::kComputeMode);
  if (!mode) return "not known to this driver";
  switch (*mode) {
    case kDefault: return "default";
    case kProhibited: return "prohibited: no process may use the GPU";
    case kExclusiveProcess: return "exclusive: the ranks cannot share the GPU without MPS";
  }
  return std::to_string(*mode);
}

std::string ordering(const Cuda& cuda) {
  const auto value = cuda.attribute(DeviceAttribute::kGpuDirectRdmaWritesOrdering);
  if (!value) return "not known to this driver";
  const char* const whom = *value >= cuda_abi::kOrderingAllDevices ? "for all devices"
                           : *value >= cuda_abi::kOrderingOwner    ? "for the owner"
                                                                   : "for none";
  return fmt::format("{} ({})", *value, whom);
}

std::string flush_options(const Cuda& cuda) {
  constexpr int kByHost = 1;
  constexpr int kByMemoryOperations = 2;
  const auto value = cuda.attribute(DeviceAttribute::kGpuDirectRdmaFlushWritesOptions);
  if (!value) return "not known to this driver";
  std::string ways = (*value & kByHost) != 0 ? "by the host" : "";
  if ((*value & kByMemoryOperations) != 0) ways += ways.empty() ? "in streams" : ", in streams";
  return fmt::format("{} ({})", *value, ways.empty() ? "none" : ways);
}

}  // namespace

std::string card(const Cuda& cuda) {
  return fmt::format(
      "shared   compute {}.{}, compute mode {}, MPS {}\n"
      "NICs     GPU_DIRECT_RDMA_SUPPORTED {}, DMA_BUF_SUPPORTED {},\n"
      "         GPU_DIRECT_RDMA_WRITES_ORDERING {}, flush options {}",
      number(cuda, DeviceAttribute::kComputeCapabilityMajor),
      number(cuda, DeviceAttribute::kComputeCapabilityMinor), compute_mode(cuda),
      yes_or_no(cuda, DeviceAttribute::kMpsEnabled),
      yes_or_no(cuda, DeviceAttribute::kGpuDirectRdmaSupported),
      yes_or_no(cuda, DeviceAttribute::kDmaBufSupported), ordering(cuda), flush_options(cuda));
}

}  // namespace beeline::gpu
