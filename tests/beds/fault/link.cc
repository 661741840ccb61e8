// SPDX-License-Identifier: Apache-2.0
//
// Each message is one packet on a SOCK_SEQPACKET socket pair.
#include "tests/beds/fault/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

#include "tests/support/must.h"

namespace beeline::test {
namespace {

int milliseconds_of_patience() {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count());
}

}  // namespace

void Link::send_bytes(const void* from, size_t size) {
  if (::send(fd_.get(), from, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    throw PeerGone("cannot write to the peer");
  }
}

void Link::receive_bytes(void* to, size_t size) {
  pollfd waiting{fd_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds_of_patience()) != 1) {
    throw MustError("the peer sent nothing in time");
  }
  const ssize_t got = ::recv(fd_.get(), to, size, 0);
  if (got <= 0) throw PeerGone("the peer closed the socket");
  BL_MUST(got == static_cast<ssize_t>(size));
}

bool Link::is_cut() const {
  pollfd waiting{fd_.get(), POLLRDHUP, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

void Link::wait_for_cut() {
  std::array<char, 256> rest{};
  for (;;) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, milliseconds_of_patience()) != 1) {
      throw MustError("the peer neither ends nor sends anything");
    }
    if (::recv(fd_.get(), rest.data(), rest.size(), 0) <= 0) return;
  }
}

}  // namespace beeline::test
