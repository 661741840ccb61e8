// SPDX-License-Identifier: Apache-2.0
//
// Which operations are run, with how much data. A case is what every rank does together once; its
// count is that of one block, and some operations take or give a block for each rank.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace beeline::gpu {

enum class DataType { kFloat32, kInt32, kUint8 };
const char* to_string(DataType type) noexcept;
int nccl_type(DataType type) noexcept;

enum class Op { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendRecv };
// "all-reduce", as on the command line and in the tables.
const char* to_string(Op op) noexcept;
const std::vector<Op>& all_ops();

struct Case {
  Op op;
  DataType type;
  std::size_t count;  // elements of a block

  std::size_t element_bytes() const noexcept;
  std::size_t bytes() const noexcept { return count * element_bytes(); }  // of a block
  std::size_t input_bytes(int ranks) const noexcept;
  std::size_t output_bytes(int ranks) const noexcept;
  // All-to-all and send/recv need two buffers.
  bool works_in_place() const noexcept;
};
// "all-reduce of 4097 int32"
std::string describe(const Case& one);

// From one element on, most of them of odd length; all-reduce up to 64 MiB. LL and LL128 stop
// earlier: NCCL itself does not use them for more, and where ranks share a GPU by turns each step
// costs a turn.
std::vector<Case> cases_for(const std::vector<Op>& ops, const std::string& proto,
                            std::size_t most_bytes);

}  // namespace beeline::gpu
