// SPDX-License-Identifier: Apache-2.0
//
// What NCCL really asks of the plugin cannot be read in NCCL's log: whether it asks for flushes,
// and by which way it hands over GPU memory. So a library of ours stands between the two
// (witness.cc), passes everything on, and counts. Its counts are in a file, one for each rank, that
// is there even if the rank dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace beeline::gpu {

// The environment of a rank: the plugin that the witness passes everything on to, and its file.
inline constexpr const char* kWitnessedPlugin = "GPU_CHECK_PLUGIN";
inline constexpr const char* kWitnessFile = "GPU_CHECK_CALLS";

// The file, mapped.
struct CallCounts {
  std::atomic<std::uint64_t> flushes;
  std::atomic<std::uint64_t> dmabufs;   // pieces of GPU memory registered as dma-bufs
  std::atomic<std::uint64_t> pointers;  // pieces of GPU memory registered by their address
};

struct Calls {
  std::uint64_t flushes = 0;
  std::uint64_t dmabufs = 0;
  std::uint64_t pointers = 0;
};
// Nothing when there is no such file: the witness was not loaded.
std::optional<Calls> read_calls(const std::string& file);

}  // namespace beeline::gpu
