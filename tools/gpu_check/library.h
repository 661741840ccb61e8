// SPDX-License-Identifier: Apache-2.0
//
// A shared library that is loaded at run time, since this machine may not have it. The error says
// where it was looked for.
#pragma once

#include <string>
#include <vector>

#include "common/base/problem.h"

namespace beeline::gpu {

// Stays loaded until the process ends, since neither CUDA nor NCCL supports unloading.
class Library {
 public:
  // Opens the first of these names or paths that can be loaded.
  static Outcome<Library> open(const std::vector<std::string>& names);

  // Where the dynamic linker found it.
  const std::string& path() const noexcept { return path_; }

  // Sets the pointer to the library's function of this name.
  template <class F>
  Outcome<void> find(const char* name, F** function) const {
    *function = reinterpret_cast<F*>(BL_TRY(find_symbol(name)));
    return {};
  }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Outcome<void*> find_symbol(const char* name) const;

  void* handle_;
  std::string path_;
};

}  // namespace beeline::gpu
