// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tools/gpu_check/witness.h"

namespace beeline::gpu {

std::optional<Calls> read_calls(const std::string& file) {
  static_assert(sizeof(CallCounts) == sizeof(Calls), "read as they were written");
  Calls calls;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(&calls), sizeof(calls))) return std::nullopt;
  return calls;
}

}  // namespace beeline::gpu
