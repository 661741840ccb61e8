// SPDX-License-Identifier: Apache-2.0
//
// Runs bodies as threads of this process or as forked processes, which can exchange messages beside
// the network under test. The caller is the hub: it forwards the messages, and when the deadline
// passes or a body fails, it ends the others and throws the reason.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/fd.h"
#include "tests/support/must.h"

namespace beeline::test {

enum class PeerMode { kThreads, kProcesses };

// Thread sanitizer supports neither fork nor several processes, so there are only threads with it.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kProcessesWork = false;
#else
inline constexpr bool kProcessesWork = true;
#endif
// In a forked child, glibc releases its allocator's locks, but AddressSanitizer of g++ 12 does not
// release its own. A child that was forked beside a thread that allocates may then wait for ever.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kForkBesideThreadsWorks = false;
#else
inline constexpr bool kForkBesideThreadsWorks = true;
#endif
std::vector<PeerMode> peer_modes();

// Given to each body: its number, and a connection to the others. Threads: one.
class Peer {
 public:
  Peer(UniqueFd line, size_t rank, size_t count);

  size_t rank() const noexcept { return rank_; }
  size_t count() const noexcept { return count_; }

  template <class T>
  void send(size_t to, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(to, std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  // Waits for the next message of FROM. Throws when the group is being ended.
  template <class T>
  T receive(size_t from) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::string bytes = receive_bytes(from);
    BL_MUST(bytes.size() == sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  // In a pair: sends `mine` and returns the other's.
  template <class T>
  T exchange(const T& mine) {
    BL_MUST(count_ == 2);
    send(1 - rank_, mine);
    return receive<T>(1 - rank_);
  }

  // Returns when every body that has not ended has called it too.
  void meet();
  // Kills another process by SIGKILL, and returns when it is gone. Only with processes.
  void kill(size_t victim);

  // The hub reads these; bodies do not call them.
  void report_done();
  void report_failure(const std::string& why);

 private:
  void send_bytes(size_t to, const std::string& bytes);
  std::string receive_bytes(size_t from);
  void read_one();

  UniqueFd line_;
  size_t rank_;
  size_t count_;
  std::vector<std::deque<std::string>> inbox_;
  unsigned answers_ = 0;  // the hub's replies to meet() and kill()
};

using PeerBody = std::function<void(Peer&)>;

// Returns when every body has returned; throws MustError when one did not, with its reason.
void run_peers(PeerMode mode, const std::vector<PeerBody>& bodies,
               std::chrono::seconds deadline = 3 * kPatience);

}  // namespace beeline::test
