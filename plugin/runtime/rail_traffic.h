// SPDX-License-Identifier: Apache-2.0
//
// Counts what each rail has carried, for one line in the log when the last connection is closed.
// Threads: any. It is not used while data moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "plugin/transfer/comm.h"

namespace beeline {

class RailTraffic {
 public:
  void on_made() noexcept;
  // After the comm's last request, while its counters are still there. Logs if it is the last comm.
  void on_closing(const Comm& comm) noexcept;

  // The traffic of one rail in one direction.
  struct Share {
    std::uint64_t bytes = 0;
    double weighted_rate = 0;  // bytes per nanosecond as the sender has measured it, times bytes
  };
  using Shares = std::map<std::string, Share>;  // by the name of the device
  // "sent 3.0 GB: mlx5_0 port 1 67 % at 0.40 GB/s, mlx5_1 port 1 33 % at 0.20 GB/s". Empty if
  // nothing was carried. Rates are left out where they are not known.
  static std::string text(const char* direction, const Shares& shares);

 private:
  void count(const Comm& comm);
  void log() const;
  void forget() noexcept;

  std::mutex mutex_;
  std::size_t open_ = 0;
  std::size_t closed_ = 0;
  std::uint64_t path_failures_ = 0;
  Shares sent_;
  Shares received_;
};

}  // namespace beeline
