// SPDX-License-Identifier: Apache-2.0
//
// Proves that both ends of a connection know the same token, without sending it. Each end sends a
// random challenge. A proof is a keyed hash (HMAC-SHA-512, the first 256 bits) with the token as
// its key. It covers which end proves, both challenges, the command and the address at which the
// ranks meet, and that of another rank also covers its hello. So the proof of one end does not
// serve as that of the other, none serves a second time, and none serves in another run with the
// same token, which a process between two runs could otherwise pass on. Challenges and proofs are
// hexadecimal digits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace beeline::ranks {

inline constexpr std::size_t kChallengeDigits = 64;
inline constexpr std::size_t kProofDigits = 64;

struct Exchange {
  std::string command = {};  // the subcommand of `beeline`
  // HOST:PORT as the user wrote it; empty if the ranks meet by a file, whose token is of one run.
  std::string address = {};
  std::string of_rank_0 = {};  // its challenge
  std::string of_other_rank = {};
};

Outcome<std::string> random_digits(std::size_t count);

// `hello` is what the other rank sends with its proof.
std::string proof_of_rank_0(const std::string& token, const Exchange& exchange);
std::string proof_of_other_rank(const std::string& token, const Exchange& exchange,
                                std::string_view hello);
// Takes equally long wherever a wrong proof differs.
bool are_equal(std::string_view proof, std::string_view right);

}  // namespace beeline::ranks
