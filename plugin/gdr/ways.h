// SPDX-License-Identifier: Apache-2.0
//
// How a NIC gets at a GPU's memory, and what was found out about it.
#pragma once

#include <cstdint>
#include <string>

namespace beeline::gdr {

enum class Way : std::uint8_t {
  kNone,
  kDmabuf,   // the GPU's driver exports the memory, the NIC's driver imports it
  kPeermem,  // the NIC's driver takes the pointer, and a module (nvidia_peermem) knows its pages
};
const char* to_string(Way way) noexcept;

// What one attempt to use a way has shown.
struct Attempt {
  bool works = false;
  std::string why_not;  // "ibv_reg_dmabuf_mr: Operation not supported"
  int sys_errno = 0;
};

// The device or its driver cannot. Some drivers answer with the kernel's own ENOTSUPP, which should
// never leave the kernel, and for which the C library has no words.
bool is_not_supported(int sys_errno) noexcept;
const char* errno_text(int sys_errno) noexcept;

inline constexpr const char* kDmabufsAreOff = "dma-bufs are turned off (NCCL_DMABUF_ENABLE)";

struct Ways {
  Attempt dmabuf;
  Attempt peermem;

  bool any() const noexcept { return dmabuf.works || peermem.works; }
  // The one that is used where there is a choice.
  Way best() const noexcept {
    if (dmabuf.works) return Way::kDmabuf;
    return peermem.works ? Way::kPeermem : Way::kNone;
  }
};

}  // namespace beeline::gdr
