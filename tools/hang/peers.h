// SPDX-License-Identifier: Apache-2.0
//
// Finds the process at the other end of a connection that waits, among those that have a page.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "tools/hang/causes.h"

namespace beeline::hang {

// The processes must outlive it.
class Peers {
 public:
  explicit Peers(std::span<const pages::Process> processes);

  // Sets the wait's `peer` and `peer_connection`.
  void find(WaitingEnd& wait) const;

 private:
  using End = std::tuple<std::string, std::int64_t, std::uint32_t>;

  void add(std::size_t process);
  void find_by_number(WaitingEnd& wait, const SlotView& slot) const;
  void find_failed(WaitingEnd& wait) const;

  std::span<const pages::Process> processes_;
  // By host, process and number: the process and the connection in the list.
  std::map<End, std::pair<std::size_t, std::size_t>> by_number_;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> by_pid_;  // and by host
  std::map<std::uint64_t, std::size_t> by_identity_;
};

}  // namespace beeline::hang
