// SPDX-License-Identifier: Apache-2.0
//
// The results of examining several hosts and of probing the rails between them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/doctor/peers/protocol.h"

namespace beeline::doctor {

struct SurveyedHost {
  std::string name;
  Examined examined = {};
  RailsOfHost rails = {};
  std::string failure = {};  // why it could not be probed; empty: it was
};

// A host on which the doctor did not run.
struct UnexaminedHost {
  std::string name;
  std::string why;  // "has ended"
};

struct RailOfHost {
  std::size_t host = 0;
  std::size_t rail = 0;
  bool operator==(const RailOfHost&) const = default;
  auto operator<=>(const RailOfHost&) const = default;
};

// A pair of rails of two hosts that was probed.
struct ProbedPair {
  RailOfHost a;
  RailOfHost b;
  bool in_gpu_memory = false;
  std::string failure = {};  // empty: all messages arrived, with the right data
  bool is_wrong = false;     // the failure is wrong data
  double round_trip_us = 0;
  double gbytes_per_s = 0;  // of the slower direction
};

struct Survey {
  std::vector<SurveyedHost> hosts;
  std::vector<UnexaminedHost> unexamined = {};
  std::vector<ProbedPair> pairs;
};

std::string name_of(const Survey& survey, const RailOfHost& rail);  // "node7 mlx5_3"

}  // namespace beeline::doctor
