// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/team.h"

#include <algorithm>
#include <cstring>

#include "tools/perf/options.h"
#include "tools/ranks/hex.h"

namespace beeline::perf {

Outcome<std::vector<std::string>> Team::gather(const std::string& what, const std::string& part) {
  send(Kind::kGather, what + '\0' + ranks::hex_of(part));
  const Outcome<std::string> answer = coordinator_.receive();
  if (!answer) return fail(kNoCoordinator);
  std::vector<std::string> parts = split(*answer, ' ');
  for (std::string& one : parts) one = ranks::bytes_of(one);
  if (parts.size() != static_cast<size_t>(ranks_)) {
    return fail(
        "the coordinator sent an invalid message; start all ranks with the same version of "
        "beeline");
  }
  return parts;
}

Outcome<bool> Team::barrier(const std::string& what) {
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

Outcome<std::uint64_t> Team::broadcast_from_rank_0(const std::string& what, std::uint64_t mine) {
  const std::string part(reinterpret_cast<const char*>(&mine), sizeof mine);
  const std::vector<std::string> all = BL_TRY(gather(what, part));
  std::uint64_t said = 0;
  std::memcpy(&said, all.front().data(), std::min(sizeof said, all.front().size()));
  return said;
}

Outcome<double> Team::least(const std::string& what, double mine) {
  const std::vector<double> all = BL_TRY(numbers(what, mine));
  return *std::min_element(all.begin(), all.end());
}

}  // namespace beeline::perf
