// SPDX-License-Identifier: Apache-2.0
//
// The one line that says how a NIC and a GPU get on.
#pragma once

#include <optional>
#include <string>

#include "plugin/gdr/prove.h"
#include "topology/distance.h"

namespace beeline::gdr {

struct Pair {
  const Device& device;
  const gpu::Gpu& gpu;
  const gpu::Cuda& cuda;
  const Proof& proof;
  std::optional<topology::Distance> distance;
  topology::Distance level;  // how far NCCL goes

  bool is_far() const noexcept { return distance && *distance > level; }
};

// "GPUDirect mlx5_0 - GPU 0 (0000:1b:00.0): on by dma-buf, PIX, 48.9 GB/s, relaxed ordering", or
// "... off: why. What to do".
std::string pair_text(const Pair& pair, const std::string& sysfs_root);

// Of a device, while no GPU is in use.
std::string without_gpu_text(const Device& device, const Ways& ways);

}  // namespace beeline::gdr
