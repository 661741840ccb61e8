// SPDX-License-Identifier: Apache-2.0
//
// The printed table: a row for each operation when it is done, facts from NCCL's log, and the
// verdict.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/gpu_check/nccl_log.h"
#include "tools/gpu_check/team.h"
#include "tools/gpu_check/witness.h"

namespace beeline::gpu {

class Table {
 public:
  // The environment of the ranks, and the head of the table.
  static void begin(const Run& run);
  void add_row(const Run& run, const Case& one, const CaseResult& result);
  void add_fault(const Run& run, const std::string& what);
  void add_log(const NcclLog& log);
  void add_calls(const Calls& calls);
  // Prints facts from NCCL's log, and the counts of the witness.
  void end_rows() const;
  // Prints the verdict, and returns whether all was right.
  bool end() const;
  bool has_faults() const noexcept { return !faults_.empty(); }

 private:
  std::uint64_t verified_ = 0;
  std::vector<std::string> faults_;
  std::set<std::string> versions_;
  std::set<std::string> plugins_;
  std::set<std::string> networks_;
  std::set<std::string> protos_;
  std::set<std::string> warnings_;
  int paths_ = 0;
  int direct_paths_ = 0;
  bool has_calls_ = false;
  Calls calls_;
};

}  // namespace beeline::gpu
