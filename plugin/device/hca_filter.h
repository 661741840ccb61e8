// SPDX-License-Identifier: Apache-2.0
//
// The device filter, in the grammar of NCCL_IB_HCA:
//   [^][=]name[:port[:rail[:plane]]],...
// ^ excludes the listed devices. With =, names must match exactly; otherwise a prefix is enough.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

struct HcaRule {
  std::string name;
  int port = -1;  // -1: any
  int rail = -1;  // -1: not given
  int plane = -1;

  bool operator==(const HcaRule&) const = default;
};

struct HcaFilter {
  enum class Mode { kInclude, kExclude };
  enum class Match { kPrefix, kExact };
  Mode mode = Mode::kInclude;
  Match match = Match::kPrefix;
  std::vector<HcaRule> rules;           // none: every device
  std::vector<std::string> complaints;  // about parts that were not understood and are ignored

  bool is_empty() const noexcept { return rules.empty() && complaints.empty(); }
};
HcaFilter parse_hca_filter(std::string_view text);

struct HcaVerdict {
  bool admitted = false;
  int rail = -1;
  int plane = -1;
};
// If several rules match, the one with the longest name decides, then one with a port, then the
// first: with "mlx5_1:1:3,mlx5_10:1:4", mlx5_10 has rail 4.
HcaVerdict judge(const HcaFilter& filter, std::string_view ibdev, int port);

}  // namespace beeline
