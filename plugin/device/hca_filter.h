// SPDX-License-Identifier: Apache-2.0
//
// Which devices a person wants: the grammar of NCCL_IB_HCA,
//   [^][=]name[:port[:rail[:plane]]],...
// ^ means all but these, = means the whole name (else a name's beginning is enough).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

struct HcaRule {
  std::string name;
  int port = -1;  // -1: any
  int rail = -1;  // -1: not said
  int plane = -1;

  bool operator==(const HcaRule&) const = default;
};

struct HcaFilter {
  enum class Mode { kInclude, kExclude };
  enum class Match { kPrefix, kExact };
  Mode mode = Mode::kInclude;
  Match match = Match::kPrefix;
  std::vector<HcaRule> rules;           // none: every device
  std::vector<std::string> complaints;  // about parts that make no sense, which were left out

  bool is_empty() const noexcept { return rules.empty() && complaints.empty(); }
};
HcaFilter parse_hca_filter(std::string_view text);

struct HcaVerdict {
  bool admitted = false;
  int rail = -1;
  int plane = -1;
};
// Where several rules match, the one with the longest name decides, then one that names the port,
// then the first: "mlx5_1:1:3,mlx5_10:1:4" gives mlx5_10 rail 4.
HcaVerdict judge(const HcaFilter& filter, std::string_view ibdev, int port);

}  // namespace beeline
