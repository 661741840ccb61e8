// SPDX-License-Identifier: Apache-2.0
//
// The body of a kGathered frame: the parts of all ranks, each preceded by its length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace beeline::perf {

inline std::string join_parts(const std::vector<std::string>& parts) {
  std::string body;
  for (const std::string& part : parts) {
    const auto length = static_cast<std::uint32_t>(part.size());
    body.append(reinterpret_cast<const char*>(&length), sizeof length).append(part);
  }
  return body;
}

inline std::vector<std::string> split_parts(const std::string& body) {
  std::vector<std::string> parts;
  for (size_t at = 0; at + sizeof(std::uint32_t) <= body.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, body.data() + at, sizeof length);
    at += sizeof length;
    parts.push_back(body.substr(at, length));
    at += length;
  }
  return parts;
}

}  // namespace beeline::perf
