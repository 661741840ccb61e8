// SPDX-License-Identifier: Apache-2.0
//
// The operations and their sizes. A case is one operation of all ranks. Its count is that of one
// block; the input or output of some operations has a block for each rank.
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

// Sizes from one element on, most of them odd; all-reduce goes up to 64 MiB. LL and LL128 have
// smaller limits: NCCL does not use them for more, and while ranks share a GPU by time slices, each
// step takes a slice.
std::vector<Case> cases_for(const std::vector<Op>& ops, const std::string& proto,
                            std::size_t most_bytes);

}  // namespace beeline::gpu
