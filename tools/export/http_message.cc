// SPDX-License-Identifier: Apache-2.0
#include "tools/export/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <vector>

namespace beeline::exporter {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
// The letters that methods and names of headers may have.
constexpr std::string_view kTokenLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

bool is_token(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kTokenLetters) == text.npos;
}

std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  return taken;
}

bool is_name(std::string_view name, std::string_view expected) {
  return std::ranges::equal(name, expected, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

// "/metrics?x=y" and "http://localhost:9900/metrics" ask for "/metrics".
std::string_view path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    const std::size_t at = target.find('/', kScheme.size());
    target = at == target.npos ? "/" : target.substr(at);
  }
  return target.substr(0, target.find('?'));
}

// A page of another site may have its own name resolved to 127.0.0.1, so that a browser on this
// host reads the reply for it (DNS rebinding). The browser still sends that name.
bool is_this_host(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon != host.npos && host.find_first_not_of("0123456789", colon + 1) == host.npos) {
    host = host.substr(0, colon);
  }
  return is_name(host, "localhost") || host == "127.0.0.1" || host == "[::1]";
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

struct Headers {
  bool are_valid = true;
  std::vector<std::string_view> hosts = {};
};

Headers parse_headers(std::string_view lines) {
  Headers headers;
  while (!lines.empty()) {
    const std::string_view line = take_until(lines, kLineEnd);
    const std::size_t colon = line.find(':');
    if (colon == line.npos || !is_token(line.substr(0, colon))) return {.are_valid = false};
    if (is_name(line.substr(0, colon), "host")) {
      headers.hosts.push_back(without_blanks(line.substr(colon + 1)));
    }
  }
  return headers;
}

Request parse_head(std::string_view head) {
  std::string_view first = take_until(head, kLineEnd);
  const std::string_view method = take_until(first, " ");
  const std::string_view target = take_until(first, " ");
  const std::string_view version = first;
  const Headers headers = parse_headers(head);
  // Version 1.1 requires one line "Host", version 1.0 allows it.
  const std::size_t least = version == "HTTP/1.1" ? 1 : 0;
  if (!is_token(method) || target.empty() || (version != "HTTP/1.1" && version != "HTTP/1.0") ||
      !headers.are_valid || headers.hosts.size() < least || headers.hosts.size() > 1) {
    return {.asked = Asked::kNonsense};
  }
  const bool is_head = method == "HEAD";
  if (!std::ranges::all_of(headers.hosts, is_this_host)) {
    return {.asked = Asked::kOtherHost, .is_head = is_head};
  }
  if (path_of(target) != "/metrics") return {.asked = Asked::kOtherPath, .is_head = is_head};
  const bool may = method == "GET" || is_head;
  return {.asked = may ? Asked::kMetrics : Asked::kOtherMethod, .is_head = is_head};
}

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 421: return "Misdirected Request";
    default: return "Internal Server Error";
  }
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, length};
}

}  // namespace

Request parse_request(std::string_view received) {
  const std::size_t end = received.find(kHeadEnd);
  const std::string_view head = received.substr(0, end);
  for (std::size_t at = head.find('\n'); at != head.npos; at = head.find('\n', at + 1)) {
    if (at == 0 || head[at - 1] != '\r') return {.asked = Asked::kNonsense};
  }
  if (end <= kMostRequestBytes) return parse_head(head);
  return {.asked = received.size() < kMostRequestBytes ? Asked::kNotAll : Asked::kNonsense};
}

std::string reply_text(const Reply& reply) {
  const char* const type = reply.status == 200 ? "text/plain; version=0.0.4; charset=utf-8"
                                               : "text/plain; charset=utf-8";
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: "
      "close\r\n",
      reply.status, reason_of(reply.status), date_now(), type, reply.body.size());
  if (reply.status == 405) text += "Allow: GET, HEAD\r\n";
  text += kLineEnd;
  if (!reply.is_head) text += reply.body;
  return text;
}

}  // namespace beeline::exporter
