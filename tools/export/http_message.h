// SPDX-License-Identifier: Apache-2.0
//
// The part of HTTP/1.1 (RFC 9112) that a scraper needs: the head of a request, and a reply after
// which the connection ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace beeline::exporter {

inline constexpr std::size_t kMostRequestBytes = 8192;

enum class Asked : std::uint8_t {
  kNotAll,       // of the request has arrived yet
  kMetrics,      // GET or HEAD /metrics
  kOtherPath,    // 404
  kOtherMethod,  // 405
  kOtherHost,    // 421
  kNonsense,     // 400
};

struct Request {
  Asked asked = Asked::kNotAll;
  bool is_head = false;  // the reply has no body
};

Request parse_request(std::string_view received);

struct Reply {
  int status = 200;
  std::string body = {};
  bool is_head = false;
};

// A reply of status 200 has the metrics in its body; others have a sentence for a person.
std::string reply_text(const Reply& reply);

}  // namespace beeline::exporter
