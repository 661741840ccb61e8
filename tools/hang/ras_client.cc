// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/ras_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/fd.h"

namespace beeline::hang {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // a rank takes half a KiB
constexpr std::int64_t kPatienceNs = 12 * kNsPerSec;
constexpr std::string_view kQuestion =
    "CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT json\nVERBOSE STATUS\n";

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

// A service of this host accepts at once, or refuses.
Outcome<UniqueFd> connect_to(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return fail(address + ": write HOST:PORT");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.substr(0, colon).c_str(),
                                  address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) return fail(address + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  std::string why = "no address";
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience = {.tv_sec = 1, .tv_usec = 0};
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (socket && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    why = std::strerror(errno);
  }
  return fail(address + ": " + why);
}

}  // namespace

std::string ras_address() {
  const char* const set = std::getenv("NCCL_RAS_ADDR");
  return set != nullptr && *set != '\0' ? set : "localhost:28028";
}

Outcome<std::string> ask_ras(const std::string& address) {
  const UniqueFd socket = BL_TRY(connect_to(address));
  if (::send(socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kQuestion.size()))
    return fail(address + " takes no question");
  std::string answer;
  const std::int64_t deadline_ns = now_ns() + kPatienceNs;
  for (char part[65536];;) {
    pollfd wait = {.fd = socket.get(), .events = POLLIN, .revents = 0};
    const std::int64_t left_ms = (deadline_ns - now_ns()) / kNsPerMs;
    if (left_ms <= 0 || ::poll(&wait, 1, static_cast<int>(left_ms)) <= 0)
      return fail(address + " does not answer");
    const ssize_t got = ::recv(socket.get(), part, sizeof part, 0);
    if (got <= 0) return answer;
    answer.append(part, static_cast<std::size_t>(got));
    if (answer.size() > kMostBytes) return fail(address + " answers too much");
  }
}

}  // namespace beeline::hang
