// SPDX-License-Identifier: Apache-2.0
//
// A temporary folder of a test, removed by its destructor.
#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"

namespace beeline::topology {

class ScratchFolder {
 public:
  ScratchFolder() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }

  // Creates the file and its folders. The path is relative.
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = std::filesystem::path(path_) / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
  }
  // Creates a relative symbolic link, as in sysfs.
  void link(const std::string& path, const std::string& target) const {
    const std::filesystem::path whole = std::filesystem::path(path_) / path;
    std::filesystem::create_directories(whole.parent_path());
    std::filesystem::create_symlink(
        std::filesystem::path(target).lexically_relative(std::filesystem::path(path).parent_path()),
        whole);
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "beeline-test-XXXXXX").string();
};

}  // namespace beeline::topology
