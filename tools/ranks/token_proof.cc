// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/token_proof.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace beeline::ranks {
namespace {

static_assert(kProofBytes == crypto_auth_hmacsha512256_BYTES);

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string proof_of(const std::string& token, const Exchange& exchange, std::string_view end,
                     std::string_view hello) {
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, bytes_of(token), token.size());
  // Each with its length, so that different parts never give the same text.
  for (const std::string_view part :
       {end, std::string_view(exchange.command), std::string_view(exchange.address),
        std::string_view(exchange.of_rank_0), std::string_view(exchange.of_other_rank), hello}) {
    const std::string text = fmt::format("{}:{}", part.size(), part);
    crypto_auth_hmacsha512256_update(&state, bytes_of(text), text.size());
  }
  std::string proof(kProofBytes, '\0');
  crypto_auth_hmacsha512256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

}  // namespace

Outcome<std::string> random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count)) return bytes;
  return fail(fmt::format("the kernel gives no random numbers for the rendezvous: {}",
                          std::strerror(errno)));
}

std::string proof_of_rank_0(const std::string& token, const Exchange& exchange) {
  return proof_of(token, exchange, "beeline: rank 0", "");
}

std::string proof_of_other_rank(const std::string& token, const Exchange& exchange,
                                std::string_view hello) {
  return proof_of(token, exchange, "beeline: other rank", hello);
}

bool are_equal(std::string_view proof, std::string_view right) {
  return proof.size() == right.size() &&
         sodium_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace beeline::ranks
