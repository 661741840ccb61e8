// SPDX-License-Identifier: Apache-2.0
//
// Requests over HTTP, as scrapers, people and strangers send them.
#include "tests/support/catch.h"
#include "tools/export/http_message.h"

namespace beeline::exporter {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

Asked asked(std::string_view text) { return parse_request(text).asked; }

TEST_CASE("export: requests for the metrics", "[tools]") {
  for (const char* text : {
           "GET /metrics HTTP/1.1\r\nHost: localhost:9\r\nAccept: */*\r\n\r\n",
           "GET /metrics HTTP/1.0\r\n\r\n",
           "GET /metrics?name[]=x HTTP/1.1\r\nhost:LocalHost\r\n\r\n",
           "GET http://localhost:9/metrics HTTP/1.1\r\nHost: localhost:9\r\n\r\n",
           "HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1:9953\r\n\r\n",
           "GET /metrics HTTP/1.1\r\nHost: \t[::1] \r\n\r\nmore that nobody reads\n",
       }) {
    CAPTURE(text);
    CHECK(asked(text) == Asked::kMetrics);
  }
  CHECK(parse_request("HEAD /metrics HTTP/1.0\r\n\r\n").is_head);
}

TEST_CASE("export: a request that has not arrived in full", "[tools]") {
  const std::string_view whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(asked(whole.substr(0, length)) == Asked::kNotAll);
  }
}

TEST_CASE("export: other paths and methods", "[tools]") {
  CHECK(asked("GET / HTTP/1.0\r\n\r\n") == Asked::kOtherPath);
  CHECK(asked("GET /metrics/ HTTP/1.0\r\n\r\n") == Asked::kOtherPath);
  CHECK(asked("GET http://localhost HTTP/1.0\r\n\r\n") == Asked::kOtherPath);
  CHECK(asked("OPTIONS * HTTP/1.0\r\n\r\n") == Asked::kOtherPath);
  CHECK(asked("POST /metrics HTTP/1.0\r\n\r\n") == Asked::kOtherMethod);
  CHECK(asked("get /metrics HTTP/1.0\r\n\r\n") == Asked::kOtherMethod);
}

TEST_CASE("export: requests for the name of another host", "[tools]") {
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9953",
                           "127.0.0.1:x", "::1", "127.0.0.2", "", ":9953", "localhost:1:2"}) {
    CAPTURE(host);
    for (const char* version : {"1.0", "1.1"}) {
      CHECK(asked(std::string("GET /metrics HTTP/") + version + "\r\nHost: " + host + "\r\n\r\n") ==
            Asked::kOtherHost);
    }
  }
}

TEST_CASE("export: what is no request", "[tools]") {
  for (const char* text : {
           "\r\n\r\n", "GET /metrics\r\n\r\n", "GET  /metrics HTTP/1.0\r\n\r\n",
           "GET /metrics HTTP/1.0 \r\n\r\n", "GET /metrics HTTP/2.0\r\n\r\n",
           "GET /metrics HTTP/1.1\r\n\r\n",                        // no host
           "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",  // two of them
           "GET /metrics HTTP/1.0\r\nA : b\r\n\r\n",               // a blank before the colon
           "GET /metrics HTTP/1.0\r\nA: b\r\n c\r\n\r\n",          // a line that goes on
           "GET /metrics HTTP/1.0\r\nno colon\r\n\r\n", "G\x01T /metrics HTTP/1.0\r\n\r\n",
           "GET /metrics HTTP/1.0\nHost: a\n\n",  // no CR
       }) {
    CAPTURE(text);
    CHECK(asked(text) == Asked::kNonsense);
  }
  const std::string longest(kMostRequestBytes, 'a');
  CHECK(asked(longest.substr(1)) == Asked::kNotAll);
  CHECK(asked(longest) == Asked::kNonsense);
  CHECK(asked("GET /metrics HTTP/1.0\r\nA: " + longest + "\r\n\r\n") == Asked::kNonsense);
}

TEST_CASE("export: replies", "[tools]") {
  const std::string text = reply_text({.status = 200, .body = "x 1\n"});
  CHECK_THAT(text, Catch::Matchers::StartsWith("HTTP/1.1 200 OK\r\nDate: ") &&
                       Contains(" GMT\r\n") &&
                       Contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n") &&
                       Contains("\r\nContent-Length: 4\r\n") &&
                       Contains("\r\nConnection: close\r\n") && EndsWith("\r\n\r\nx 1\n"));
  CHECK_THAT(reply_text({.status = 200, .body = "x 1\n", .is_head = true}),
             Contains("\r\nContent-Length: 4\r\n") && EndsWith("\r\n\r\n"));
  CHECK_THAT(reply_text({.status = 405}), Contains("\r\nAllow: GET, HEAD\r\n"));
}

}  // namespace
}  // namespace beeline::exporter
