// SPDX-License-Identifier: Apache-2.0
//
// Writes the log lines about GPUDirect between a GPU and the NICs of this host: one line for each
// GPU, and warnings for faults.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/gdr/prove.h"
#include "topology/distance.h"

namespace beeline::gdr {

// The result of the test of a GPU with one NIC.
struct Tried {
  const Device* device;
  Proof proof;
  std::optional<topology::Distance> distance;  // nothing: not known
};

struct GpuReport {
  const gpu::Gpu& gpu;
  const gpu::Cuda& cuda;
  topology::Distance level;  // how far NCCL goes
  std::span<const Tried> tried;
};

struct Line {
  bool is_warning;
  std::string text;
};

// "GPUDirect GPU 0 (0000:1b:00.0): on with mlx5_0, mlx5_1 (PIX, dma-buf); 6 farther NICs not used
// (normal)", and a warning for each reason for which NICs do not reach the GPU.
std::vector<Line> lines_of(const GpuReport& report, const std::string& sysfs_root);

// The answers of a device and the driver while no GPU is in use.
struct Answered {
  const Device* device;
  Ways ways;
};

// "GPUDirect: this process uses no GPU yet; by what the drivers say it will work with mlx5_0
// (dma-buf)"
std::string without_gpu_text(std::span<const Answered> answers, topology::Distance level);

}  // namespace beeline::gdr
