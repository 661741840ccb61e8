// SPDX-License-Identifier: Apache-2.0
//
// Proves that both ends of a connection know the same token, without sending it. Each end sends a
// random challenge. A proof is a keyed hash (HMAC-SHA-512, the first 256 bits) of which end proves
// and of both challenges, with the token as its key. So the proof of one end does not serve as that
// of the other, and none serves a second time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/cli/exit_status.h"

namespace beeline::perf {

inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kProofBytes = 32;

enum class ProvingEnd { kRank0, kOtherRank };

struct Challenges {
  std::string of_rank_0;
  std::string of_other_rank;
};

Outcome<std::string> random_bytes(std::size_t count);

std::string proof_of(ProvingEnd end, const std::string& token, const Challenges& challenges);
// Takes equally long wherever a wrong proof differs.
bool is_proof_of(ProvingEnd end, const std::string& token, const Challenges& challenges,
                 std::string_view proof);

}  // namespace beeline::perf
