// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/token_proof.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "tools/ranks/hex.h"

namespace beeline::ranks {
namespace {

static_assert(kProofDigits == std::size_t{2} * crypto_auth_hmacsha512256_BYTES);

const unsigned char* data_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string proof_of(const std::string& token, const Exchange& exchange, std::string_view end,
                     std::string_view hello) {
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, data_of(token), token.size());
  // Each with its length, so that different parts never give the same text.
  for (const std::string_view part :
       {end, std::string_view(exchange.command), std::string_view(exchange.address),
        std::string_view(exchange.of_rank_0), std::string_view(exchange.of_other_rank), hello}) {
    const std::string text = fmt::format("{}:{}", part.size(), part);
    crypto_auth_hmacsha512256_update(&state, data_of(text), text.size());
  }
  std::string proof(kProofDigits / 2, '\0');
  crypto_auth_hmacsha512256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return hex_of(proof);
}

}  // namespace

Outcome<std::string> random_digits(std::size_t count) {
  std::string bytes(count / 2, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) {
    return hex_of(bytes);
  }
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
