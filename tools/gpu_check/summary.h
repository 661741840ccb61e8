// SPDX-License-Identifier: Apache-2.0
//
// Writes the rows that scripts/gpu-check puts into its table: a line for each operation, number of
// ranks and kind of memory, over all protocols, and a line for other faults of these runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tools/gpu_check/nccl_log.h"
#include "tools/gpu_check/team.h"

namespace beeline::gpu {

class Summary {
 public:
  // Called before the run, so that its operations are listed even if it did none.
  void begin(const Run& run);
  void add_case(const Run& run, const Case& one, const CaseResult& result);
  void add_fault(const Run& run, const std::string& what);
  // NCCL did not use what the run was to test, so right elements prove nothing.
  void discount(const Run& run);
  void add_log(const Run& run, const NcclLog& log);
  // Writes all lines so far, with tabs between the fields: what, network, NCCL, ranks, memory,
  // result, seconds. The file is replaced atomically. Returns false if it cannot be written.
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
