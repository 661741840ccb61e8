// SPDX-License-Identifier: Apache-2.0
//
// A temporary directory for statistics pages, removed with its content.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/must.h"

namespace beeline::test {

class StatsDir {
 public:
  StatsDir() { BL_MUST(::mkdtemp(path_.data()) != nullptr); }
  StatsDir(const StatsDir&) = delete;
  StatsDir& operator=(const StatsDir&) = delete;
  ~StatsDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  size_t entries() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  // In memory, as in production: file systems on disks treat sparse files differently.
  std::string path_ = "/dev/shm/beeline_stats_test_XXXXXX";
};

}  // namespace beeline::test
