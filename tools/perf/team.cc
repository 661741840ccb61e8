// SPDX-License-Identifier: Apache-2.0
//
// See team.h.
#include "tools/perf/team.h"

#include <algorithm>
#include <cstring>

#include "tools/perf/gathered.h"

namespace beeline::perf {

using tools::Outcome;

Outcome<std::vector<std::string>> Team::gather(const std::string& what, const std::string& part) {
  const bool sent = line_.send(FrameKind::kGather, what + '\0' + part);
  const std::optional<Frame> answer = sent ? line_.receive() : std::nullopt;
  if (!answer || answer->kind != FrameKind::kGathered) {
    return fail("the coordinator went away; rank 0, or the process which started it, has ended");
  }
  return split_parts(answer->body);
}

Outcome<bool> Team::meet(const std::string& what) {
  BL_TRY(gather(what, {}));
  return true;
}

Outcome<std::vector<double>> Team::numbers(const std::string& what, double mine) {
  const std::string part(reinterpret_cast<const char*>(&mine), sizeof mine);
  std::vector<double> all;
  for (const std::string& theirs : BL_TRY(gather(what, part))) {
    double number = 0;
    std::memcpy(&number, theirs.data(), std::min(sizeof number, theirs.size()));
    all.push_back(number);
  }
  return all;
}

Outcome<double> Team::greatest(const std::string& what, double mine) {
  const std::vector<double> all = BL_TRY(numbers(what, mine));
  return *std::max_element(all.begin(), all.end());
}

Outcome<double> Team::least(const std::string& what, double mine) {
  const std::vector<double> all = BL_TRY(numbers(what, mine));
  return *std::min_element(all.begin(), all.end());
}

}  // namespace beeline::perf
