// SPDX-License-Identifier: Apache-2.0
//
// The two ways by which a NIC can access a GPU's memory, and the result of trying them.
#pragma once

#include <cstdint>
#include <string>

namespace beeline::gdr {

enum class Way : std::uint8_t {
  kNone,
  kDmabuf,   // the GPU's driver exports the memory, and the NIC's driver imports it
  kPeermem,  // the NIC's driver gets the pages of a pointer from a kernel module (nvidia_peermem)
};
const char* to_string(Way way) noexcept;

// The result of an attempt to use one way.
struct Attempt {
  bool works = false;
  std::string why_not;  // "ibv_reg_dmabuf_mr: Operation not supported"
  int sys_errno = 0;
};

// Whether the device or its driver does not support the call. Some drivers return the kernel's
// internal ENOTSUPP, for which the C library has no text.
bool is_not_supported(int sys_errno) noexcept;
const char* errno_text(int sys_errno) noexcept;

inline constexpr const char* kDmabufsAreOff = "dma-bufs are turned off (NCCL_DMABUF_ENABLE)";

struct Ways {
  Attempt dmabuf;
  Attempt peermem;

  bool any() const noexcept { return dmabuf.works || peermem.works; }
  // The one that is preferred if both work.
  Way best() const noexcept {
    if (dmabuf.works) return Way::kDmabuf;
    return peermem.works ? Way::kPeermem : Way::kNone;
  }
};

}  // namespace beeline::gdr
