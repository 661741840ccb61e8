// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/cm_api.h"

#include <dlfcn.h>

#include "plugin/verbs/api.h"

namespace beeline::verbs {
namespace {

constexpr const char* kHowToFix =
    "; install the package librdmacm1 (Debian) or librdmacm (rdma-core), or set BEELINE_RDMACM_LIB "
    "to the library's path";

// Returns the first symbol that is missing, or null.
const char* fill(CmApi& api, void* library) {
  const char* missing = nullptr;
  const auto take = [&](auto& member, const char* symbol, const char* node) {
    void* const found = find_symbol(library, symbol, node);
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(found);
    if (found == nullptr && missing == nullptr) missing = symbol;
  };
#define BL_RDMACM_TAKE(member, symbol, node) take(api.member, #symbol, node);
  BL_RDMACM_FUNCTIONS(BL_RDMACM_TAKE)
#undef BL_RDMACM_TAKE
  return missing;
}

}  // namespace

Outcome<CmApi> load_cm(const std::string& explicit_path) {
  const std::string name = explicit_path.empty() ? "librdmacm.so.1" : explicit_path;
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail("no usable librdmacm: " + (why != nullptr ? why : name + " cannot be loaded") +
                kHowToFix);
  }
  CmApi api;
  if (const char* const missing = fill(api, library)) {
    return fail("no usable librdmacm: " + name + " has no " + missing +
                " and is older than rdma-core 23" + kHowToFix);
  }
  return api;
}

Outcome<const CmApi*> CmLibrary::get() {
  const std::lock_guard lock(mutex_);
  if (!loaded_) loaded_ = load_cm(path_);
  if (!*loaded_) return fail(loaded_->error());
  return &**loaded_;
}

}  // namespace beeline::verbs
