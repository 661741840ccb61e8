// SPDX-License-Identifier: Apache-2.0
// SOFTGPU="driver=12040,dmabuf=no,fail=cuMemAlloc@3:2": what kind of GPU and driver to be, and what
// to get wrong. docs/softgpu.md lists the keys.
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
  int driver = 13000;       // what cuDriverGetVersion says; calls that came later are not supported
  int compute = 90;         // 90: compute capability 9.0
  std::optional<int> gpus;  // how many; without it those of the host's PCI tree
  std::uint64_t memory = std::uint64_t{16} << 30;
  std::optional<std::uint64_t> bar1;  // without it that of the PCI tree, else as much as `memory`
  bool dmabuf = true;
  bool peermem = true;
  bool gdr = true;
  bool mappable = true;  // a software NIC may map the bytes, as no real driver lets it
  int queues = 0;        // that streams share; 0: the work of a stream is done at once
  bool coherent = false;
  int flush = 3;       // of the kFlushOption bits
  int ordering = 200;  // kOrdering...
  std::set<std::string, std::less<>> missing;
  // Which turn of which call fails, and how.
  std::map<std::string, std::map<std::uint64_t, int>, std::less<>> failures;

  static beeline::Outcome<Settings> parse(std::string_view text);
};

}  // namespace softnic::gpu
