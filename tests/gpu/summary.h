// SPDX-License-Identifier: Apache-2.0
//
// What scripts/gpu-check puts into its one table: a line for each operation, number of ranks and
// kind of memory, over all protocols, and a line for whatever else was wrong with those runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/gpu/nccl_log.h"
#include "tests/gpu/team.h"

namespace beeline::gpu {

class Summary {
 public:
  // Before anything of the run: what it was meant to do shows even if it did nothing.
  void begin(const Run& run);
  void add_case(const Run& run, const Case& one, const CaseResult& result);
  void add_fault(const Run& run, const std::string& what);
  // The run did not show that it took the way it was to test, so right elements prove nothing.
  void discount(const Run& run);
  void add_log(const Run& run, const NcclLog& log);
  // Writes the lines known so far, fields set apart by tabs: what, network, NCCL, ranks, memory,
  // result, seconds. The file is the old one or the new one, whenever we are killed. False if it
  // cannot be written.
  bool write(const std::string& file) const;

 private:
  struct Line {
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;  // elements
    double seconds = 0;
  };
  struct Part {
    std::string network = "-";
    std::string nccl = "-";
    std::map<Op, Line> lines;
    bool counts = true;
    std::size_t faults = 0;
    std::string first_fault;
  };
  using Key = std::pair<int, Memory>;
  static Key key(const Run& run) { return {run.ranks, run.settings.memory}; }
  static std::string result_of(const Line& line, bool counts);

  std::map<Key, Part> parts_;
};

}  // namespace beeline::gpu
