// SPDX-License-Identifier: Apache-2.0
//
// Says in one line of the log what the connections of this process wait for, when they have waited
// for long. Of several, the line names the one that is nearest to the cause.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "plugin/connect/comm/link.h"

namespace beeline {

class WaitLog {
 public:
  // With a limit of 0 it logs nothing.
  explicit WaitLog(std::int64_t limit_ns) noexcept : limit_ns_(limit_ns) {}

  // How often look() is to be called.
  std::int64_t period_ns() const noexcept;
  void look(const std::vector<std::shared_ptr<Link>>& links, std::int64_t now_ns);

 private:
  std::int64_t limit_ns_;
  // Those that waited when the last line was logged, and still do. Only their addresses are used.
  std::set<const Link*> logged_;
};

}  // namespace beeline
