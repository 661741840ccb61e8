// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the tests that look at the directory of a fabric.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "softnic/fabric/fabric.h"
#include "tests/support/must.h"

namespace beeline::test {

inline std::string dir_of(const std::string& name) {
  const auto dir = softnic::state_dir(name);
  BL_MUST(dir.has_value());
  return *dir;
}

inline bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

inline bool is_listed(const std::string& name) {
  const auto all = softnic::list_fabrics();
  return std::find(all.begin(), all.end(), name) != all.end();
}

// Holds the fabric with this name in this process.
inline softnic::Holder hold(const std::string& name) {
  auto holder = softnic::Holder::hold(name, nullptr);
  BL_MUST(holder.has_value());
  return std::move(holder).value();
}

}  // namespace beeline::test
