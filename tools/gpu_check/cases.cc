// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tools/gpu_check/nccl_api.h"

namespace beeline::gpu {
namespace {

constexpr std::size_t kMebi = std::size_t{1} << 20;

struct Size {
  DataType type;
  std::size_t count;
};

// Ordered by size. 31 and 1023 floats end within a line of 128 bytes; the uint8 blocks end
// anywhere.
constexpr std::array kReduceSizes{
    Size{DataType::kFloat32, 1},
    Size{DataType::kUint8, 3},
    Size{DataType::kFloat32, 31},
    Size{DataType::kFloat32, 1023},
    Size{DataType::kUint8, 12345},
    Size{DataType::kInt32, 4097},
    Size{DataType::kFloat32, 65537},
    Size{DataType::kFloat32, kMebi / 4},
    Size{DataType::kInt32, 786433},
    Size{DataType::kFloat32, kMebi + 1},
    Size{DataType::kFloat32, 4 * kMebi - 1},
    Size{DataType::kFloat32, 16 * kMebi},
};

// The sizes of a block. The whole buffer has a block for each rank, so blocks of odd length begin
// at any alignment.
constexpr std::array kBlockSizes{
    Size{DataType::kFloat32, 1},         Size{DataType::kUint8, 3},
    Size{DataType::kFloat32, 1023},      Size{DataType::kUint8, 12345},
    Size{DataType::kInt32, 65537},       Size{DataType::kFloat32, kMebi / 4},
    Size{DataType::kFloat32, kMebi + 1},
};

std::size_t most_bytes_of(const std::string& proto) {
  if (proto == "LL") return 4 * kMebi;
  if (proto == "LL128") return 16 * kMebi;
  return SIZE_MAX;
}

template <class Sizes>
void add_cases(Op op, const Sizes& sizes, std::size_t most, std::vector<Case>& cases) {
  for (const Size& size : sizes) {
    const Case one{op, size.type, size.count};
    if (one.bytes() <= most) cases.push_back(one);
  }
}

}  // namespace

const char* to_string(DataType type) noexcept {
  switch (type) {
    case DataType::kFloat32: return "float";
    case DataType::kInt32: return "int32";
    case DataType::kUint8: return "uint8";
  }
  return "?";
}

int nccl_type(DataType type) noexcept {
  switch (type) {
    case DataType::kFloat32: return kNcclFloat32;
    case DataType::kInt32: return kNcclInt32;
    case DataType::kUint8: return kNcclUint8;
  }
  return -1;
}

const char* to_string(Op op) noexcept {
  switch (op) {
    case Op::kAllReduce: return "all-reduce";
    case Op::kAllGather: return "all-gather";
    case Op::kReduceScatter: return "reduce-scatter";
    case Op::kAllToAll: return "all-to-all";
    case Op::kSendRecv: return "send-recv";
  }
  return "?";
}

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops{Op::kAllReduce, Op::kAllGather, Op::kReduceScatter,
                                   Op::kAllToAll, Op::kSendRecv};
  return ops;
}

std::size_t Case::element_bytes() const noexcept { return type == DataType::kUint8 ? 1 : 4; }

std::size_t Case::input_bytes(int ranks) const noexcept {
  const bool is_for_each_rank = op == Op::kReduceScatter || op == Op::kAllToAll;
  return is_for_each_rank ? bytes() * static_cast<std::size_t>(ranks) : bytes();
}

std::size_t Case::output_bytes(int ranks) const noexcept {
  const bool is_of_each_rank = op == Op::kAllGather || op == Op::kAllToAll;
  return is_of_each_rank ? bytes() * static_cast<std::size_t>(ranks) : bytes();
}

bool Case::works_in_place() const noexcept { return op != Op::kAllToAll && op != Op::kSendRecv; }

std::string describe(const Case& one) {
  return fmt::format("{} of {} {}", to_string(one.op), one.count, to_string(one.type));
}

std::vector<Case> cases_for(const std::vector<Op>& ops, const std::string& proto,
                            std::size_t most_bytes) {
  const std::size_t most = std::min(most_bytes, most_bytes_of(proto));
  std::vector<Case> cases;
  for (const Op op : ops) {
    if (op == Op::kAllReduce) {
      add_cases(op, kReduceSizes, most, cases);
    } else {
      add_cases(op, kBlockSizes, most, cases);
    }
  }
  return cases;
}

}  // namespace beeline::gpu
