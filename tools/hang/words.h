// SPDX-License-Identifier: Apache-2.0
//
// Causes and processes in words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/hang/causes.h"

namespace beeline::hang {

// How the report names processes: "rank 2 (pid 4711)", with the host if there are several.
class Names {
 public:
  explicit Names(std::span<const pages::Process> processes)
      : processes_(processes),
        has_hosts_(std::ranges::any_of(processes, [&](const pages::Process& one) {
          return one.host != processes.front().host;
        })) {}

  bool has_hosts() const noexcept { return has_hosts_; }
  std::string of(std::size_t index) const;
  // The process at the other end, or what is known of it.
  std::string peer_of(const WaitingEnd& wait) const;

 private:
  std::span<const pages::Process> processes_;
  bool has_hosts_;
};

// The cause and the processes must outlive it.
class Words {
 public:
  Words(const Cause& cause, std::span<const pages::Process> processes, std::int64_t now_ns)
      : cause_(cause), processes_(processes), names_(processes), now_ns_(now_ns) {}

  std::string fact() const;
  // What to do next. If there are several hosts, it begins with that of the process.
  std::string advice() const;

 private:
  std::string advice_on_host() const;
  std::string advice_for_threads() const;
  std::string plain_fact() const;
  std::string ended() const;
  std::string lost_credit() const;
  std::string failed_connection() const;
  std::string ports_down() const;
  std::string on_connections() const;
  std::string missing_ranks() const;
  std::string unmet() const;

  const SlotView& slot() const { return slot_of(cause_.example, processes_); }
  std::string culprit() const { return names_.of(*cause_.process); }
  std::string waiting() const { return names_.of(cause_.example.process); }
  std::string peer() const { return names_.peer_of(cause_.example); }

  const Cause& cause_;
  std::span<const pages::Process> processes_;
  Names names_;
  std::int64_t now_ns_;
};

// "mlx5_0:1": the ports of this end that went down, and on which no path has worked since.
std::vector<std::string> names_of_ports_down(const SlotView& connection);

// "2, 5-7"
std::string ranks_text(const std::vector<RankRange>& ranges);

// "3 connections"
std::string counted(std::uint64_t count, const char* what);
std::string seconds(std::int64_t ns);  // "6 s"

}  // namespace beeline::hang
