// SPDX-License-Identifier: Apache-2.0
//
// A socket between two workers, beside the network under test. If the peer dies, waiting on it ends
// with an exception.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/base/fd.h"

namespace beeline::test {

// The other worker has died or exited.
class PeerGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Link {
 public:
  explicit Link(int fd) noexcept : fd_(fd) {}

  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(&value, sizeof value);
  }
  template <class T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    receive_bytes(&value, sizeof value);
    return value;
  }
  template <class T>
  T exchange(const T& mine) {
    send(mine);
    return receive<T>();
  }
  // Returns when the peer has called it, too.
  void meet() { (void)exchange('m'); }

  // Whether the peer has closed its end.
  bool is_cut() const;
  // Returns when the peer has closed its end, which it does at the latest when it dies.
  void wait_for_cut();

 private:
  void send_bytes(const void* from, size_t size);
  void receive_bytes(void* to, size_t size);

  UniqueFd fd_;
};

}  // namespace beeline::test
