// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace beeline::gpu {
namespace {

std::string loaded_from(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return name;
  return map->l_name;
}

}  // namespace

Outcome<Library> Library::open(const std::vector<std::string>& names) {
  std::string reasons;
  for (const std::string& name : names) {
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(handle, loaded_from(handle, name));
    }
    const char* const why = dlerror();
    reasons += fmt::format("\n    {}", why == nullptr ? name.c_str() : why);
  }
  return fail(fmt::format("looked for it here:{}", reasons));
}

Outcome<void*> Library::find_symbol(const char* name) const {
  if (void* const symbol = dlsym(handle_, name); symbol != nullptr) return symbol;
  return fail(fmt::format("{} has no function {}", path_, name));
}

}  // namespace beeline::gpu
