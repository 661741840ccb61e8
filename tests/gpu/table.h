// SPDX-License-Identifier: Apache-2.0
//
// What a person reads: a row for each all-reduce as it is done, what NCCL said of itself, and the
// verdict.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/nccl_log.h"
#include "tests/gpu/team.h"

namespace beeline::gpu {

class Table {
 public:
  // The environment of the ranks, and the head of the table.
  static void begin(const Run& run);
  void add_row(const Run& run, const Case& one, const CaseResult& result);
  void add_fault(const Run& run, const std::string& what);
  void add_log(const NcclLog& log);
  // Whether all went well, which is also said.
  bool end() const;

 private:
  std::uint64_t reduced_ = 0;
  std::vector<std::string> faults_;
  std::set<std::string> plugins_;
  std::set<std::string> networks_;
  std::set<std::string> protos_;
  std::set<std::string> warnings_;
};

}  // namespace beeline::gpu
