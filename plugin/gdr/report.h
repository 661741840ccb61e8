// SPDX-License-Identifier: Apache-2.0
//
// Turns the tests of a GPU with the NICs of this host into findings: one note for each GPU, and a
// warning for each reason why NICs do not reach it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/finding.h"
#include "plugin/gdr/prove.h"
#include "topology/distance.h"

namespace beeline::gdr {

// The result of testing a GPU with one NIC.
struct Tried {
  const Device* device;
  Proof proof;
  std::optional<topology::Distance> distance;  // empty: not known
};

struct GpuReport {
  const gpu::Gpu& gpu;
  const gpu::Cuda& cuda;
  topology::Distance level;  // the greatest distance at which NCCL uses GPUDirect
  std::span<const Tried> tried;
};

// "GPUDirect GPU 0 (0000:1b:00.0): on with mlx5_0, mlx5_1 (PIX, dma-buf); 6 farther NICs not used
// (normal)", and a warning for each reason for which NICs do not reach the GPU. The ids are
// gpudirect-on, gpudirect-off, gpudirect-too-far and gpudirect-turned-off; Finding::subject is the
// GPU, and Finding::others are the NICs.
std::vector<Finding> findings_of(const GpuReport& report, const std::string& sysfs_root);

// The ways that a device and the drivers say they support, while no GPU is in use.
struct Answered {
  const Device* device;
  Ways ways;
};

// "GPUDirect: this process uses no GPU yet, so nothing was tested; the drivers offer it with mlx5_0
// (dma-buf)". The id is gpudirect-not-tried, or gpudirect-turned-off.
Finding finding_without_gpu(std::span<const Answered> answers, topology::Distance level);

}  // namespace beeline::gdr
