// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/hex.h"

#include <sodium.h>

namespace beeline::ranks {

std::string hex_of(std::string_view bytes) {
  std::string hex(2 * bytes.size() + 1, '\0');  // with the zero that is written behind it
  sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size());
  hex.pop_back();
  return hex;
}

std::string bytes_of(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  std::size_t length = 0;
  sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), hex.data(),
                 hex.size(), nullptr, &length, nullptr);
  bytes.resize(length);
  return bytes;
}

}  // namespace beeline::ranks
