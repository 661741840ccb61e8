// SPDX-License-Identifier: Apache-2.0
//
// NCCL's log does not show all of its calls of the plugin: whether it calls iflush, and how it
// registers GPU memory. So a library between the two (witness.cc) forwards all calls and counts
// these. The counts of each rank are in a file, which stays even if the rank dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace beeline::gpu {

// Environment variables of a rank: the plugin to which the witness forwards calls, and its file.
inline constexpr const char* kWitnessedPlugin = "GPU_CHECK_PLUGIN";
inline constexpr const char* kWitnessFile = "GPU_CHECK_CALLS";

// The content of the file, which is mapped.
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
// Returns nothing if there is no such file, which means that the witness was not loaded.
std::optional<Calls> read_calls(const std::string& file);

}  // namespace beeline::gpu
