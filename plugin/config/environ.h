// SPDX-License-Identifier: Apache-2.0
//
// A copy of environment variables: those of the process, or those of a test. No other code reads
// the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

class Environ {
 public:
  struct Variable {
    std::string name;
    std::string value;
  };

  // The current variables of this process. NCCL adds the lines of its nccl.conf before it loads the
  // plugin. The secret of `beeline perf` and `beeline doctor` is left out: it is no parameter, and
  // what is read here may be printed.
  static Environ of_process();

  // Each is "NAME=VALUE". If a name occurs twice, the first one counts, as for getenv.
  explicit Environ(const std::vector<std::string_view>& assignments);

  // An empty value counts as not set, as in NCCL.
  std::optional<std::string_view> get(std::string_view name) const;

  const std::vector<Variable>& variables() const noexcept { return variables_; }

 private:
  std::vector<Variable> variables_;
};

}  // namespace beeline
