// SPDX-License-Identifier: Apache-2.0
// Parses SOFTGPU="driver=12040,dmabuf=no,fail=cuMemAlloc@3:2": the properties of the GPUs and the
// driver, and faults. docs/softgpu.md lists the keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace softnic::gpu {

struct Settings {
  int driver = 13000;       // the version that cuDriverGetVersion returns; newer calls do not exist
  int compute = 90;         // 90: compute capability 9.0
  std::optional<int> gpus;  // their number; without it, the GPUs of the host's PCI tree
  std::uint64_t memory = std::uint64_t{16} << 30;
  std::optional<std::uint64_t> bar1;  // without it, the size in the PCI tree, or else `memory`
  bool dmabuf = true;
  bool peermem = true;
  bool gdr = true;
  bool packed = false;   // allocations begin within pages
  bool mappable = true;  // softnic may map device memory, which no real driver permits
  int queues = 0;        // shared by streams; 0: the work of a stream is done at once
  bool coherent = false;
  int flush = 3;       // of the kFlushOption bits
  int ordering = 200;  // kOrdering...
  std::set<std::string, std::less<>> missing;
  // By call: which of its invocations fail, and with which CUresult.
  std::map<std::string, std::map<std::uint64_t, int>, std::less<>> failures;

  static beeline::Outcome<Settings> parse(std::string_view text);
};

}  // namespace softnic::gpu
