// SPDX-License-Identifier: Apache-2.0
//
// A copy of environment variables: the process's own, or what a test wants. This is the only place
// that reads the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace beeline {

class Environ {
 public:
  struct Variable {
    std::string name;
    std::string value;
  };

  // What this process has now. NCCL has put the lines of its nccl.conf there before it loads us.
  static Environ of_process();

  // Each "NAME=VALUE"; of two with one name, the first counts, as it does for getenv.
  explicit Environ(const std::vector<std::string_view>& assignments);

  // Set to nothing counts as not set: that is how NCCL reads its own variables.
  std::optional<std::string_view> get(std::string_view name) const;

  const std::vector<Variable>& variables() const noexcept { return variables_; }

 private:
  std::vector<Variable> variables_;
};

}  // namespace beeline
