// SPDX-License-Identifier: Apache-2.0
//
// A shared library that may not be on this machine: found at run time, and when it is not, the
// sentence says where it was looked for.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/outcome.h"

namespace beeline::gpu {

// Stays loaded until the process ends: neither CUDA nor NCCL likes to be unloaded.
class Library {
 public:
  // The first of these names or paths that loads.
  static Outcome<Library> open(const std::vector<std::string>& names);

  // Where the dynamic linker found it.
  const std::string& path() const noexcept { return path_; }

  // Sets a function pointer to what has this name in the library.
  template <class F>
  Outcome<Done> find(const char* name, F** function) const {
    *function = reinterpret_cast<F*>(BL_TRY(find_symbol(name)));
    return Done{};
  }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Outcome<void*> find_symbol(const char* name) const;

  void* handle_;
  std::string path_;
};

}  // namespace beeline::gpu
