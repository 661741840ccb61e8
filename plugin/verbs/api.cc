// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/api.h"

#include <dlfcn.h>

namespace beeline::verbs {
namespace {

enum class Need { kRequired, kOptional };

// Returns the first required symbol that is missing, or null.
const char* fill(Api& api, void* library) {
  const char* missing = nullptr;
  const auto take = [&](auto& member, const char* symbol, const char* node, Need need) {
    void* const found = find_symbol(library, symbol, node);
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(found);
    if (found == nullptr && need == Need::kRequired && missing == nullptr) missing = symbol;
  };
#define BL_VERBS_TAKE(member, symbol, node, need) take(api.member, #symbol, node, Need::need);
  BL_VERBS_FUNCTIONS(BL_VERBS_TAKE)
#undef BL_VERBS_TAKE
  take(api.query_port_speed, "ibv_query_port_speed", "IBVERBS_1.16", Need::kOptional);
  return missing;
}

Outcome<Api> load_one(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(why != nullptr ? std::string(why) : name + ": cannot be loaded");
  }
  Api api;
  if (const char* const missing = fill(api, library)) {
    return fail(name + ": has no " + missing);
  }
  api.library = name;
  return api;
}

}  // namespace

void* find_symbol(void* library, const char* symbol, const char* node) {
  void* const versioned = ::dlvsym(library, symbol, node);
  return versioned != nullptr ? versioned : ::dlsym(library, symbol);
}

Outcome<Loaded> load(const std::string& explicit_path) {
  std::vector<std::string> names;
  if (!explicit_path.empty()) names.push_back(explicit_path);
  // The development name is first, as in NCCL: a site that installs its own build of the library
  // puts it there.
  names.insert(names.end(), {"libibverbs.so", "libibverbs.so.1"});

  Loaded loaded;
  std::string tried;
  for (const std::string& name : names) {
    auto api = load_one(name);
    if (api) {
      loaded.api = std::move(*api);
      return loaded;
    }
    if (name == explicit_path) {
      loaded.notes.push_back("the libibverbs that was asked for is not used: " + api.error().text);
    }
    tried += (tried.empty() ? "" : "; ") + api.error().text;
  }
  return fail("no usable libibverbs, so no RDMA (tried: " + tried +
              "); install the package libibverbs1 (Debian) or libibverbs (rdma-core), or set "
              "BEELINE_IBVERBS_LIB to the library's path");
}

}  // namespace beeline::verbs
