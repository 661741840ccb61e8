// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/token_proof.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace beeline::perf {
namespace {

static_assert(kProofBytes == crypto_auth_hmacsha512256_BYTES);

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Outcome<std::string> random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count)) return bytes;
  return fail(fmt::format("the kernel gives no random numbers for the rendezvous: {}",
                          std::strerror(errno)));
}

std::string proof_of(ProvingEnd end, const std::string& token, const Challenges& challenges) {
  // The challenges have a fixed length, so different arguments never give the same text.
  const std::string text = (end == ProvingEnd::kRank0 ? "beeline: rank 0" : "beeline: other rank") +
                           challenges.of_rank_0 + challenges.of_other_rank;
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, bytes_of(token), token.size());
  crypto_auth_hmacsha512256_update(&state, bytes_of(text), text.size());
  std::string proof(kProofBytes, '\0');
  crypto_auth_hmacsha512256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

bool is_proof_of(ProvingEnd end, const std::string& token, const Challenges& challenges,
                 std::string_view proof) {
  const std::string right = proof_of(end, token, challenges);
  return proof.size() == right.size() &&
         sodium_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace beeline::perf
