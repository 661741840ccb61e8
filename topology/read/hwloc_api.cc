// SPDX-License-Identifier: Apache-2.0
#include "topology/read/hwloc_api.h"

#include <dlfcn.h>

#include <type_traits>

namespace beeline::topology {
namespace {

// The soname changes with the layout of hwloc's structures, so no other one can be used.
constexpr const char* kLibrary = "libhwloc.so.15";
constexpr unsigned major_of(unsigned version) noexcept { return version >> 16; }

// Most of these start a driver, a CUDA context or an X connection in the calling process. "pci" is
// not needed, because PCI is read from sysfs. "x86" moves the calling thread to each processor in
// turn, to query it, and waits there behind whatever runs.
constexpr const char* kUnwanted[] = {"cuda", "nvml",      "opencl", "gl",
                                     "rsmi", "levelzero", "pci",    "x86"};

const char* fill(HwlocApi& api, void* library) {
  const char* missing = nullptr;
  const auto take = [&](auto& member, const char* symbol) {
    void* const found = ::dlsym(library, symbol);
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(found);
    if (found == nullptr && missing == nullptr) missing = symbol;
  };
#define BL_HWLOC_TAKE(member, symbol) take(api.member, #symbol);
  BL_HWLOC_FUNCTIONS(BL_HWLOC_TAKE)
#undef BL_HWLOC_TAKE
  return missing;
}

}  // namespace

Outcome<HwlocApi> load_hwloc() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(std::string("hwloc is not installed (") + kLibrary +
                "); install libhwloc15 (Debian) or hwloc-libs");
  }
  HwlocApi api;
  if (const char* const missing = fill(api, library)) {
    return fail(std::string(kLibrary) + " has no " + missing);
  }
  if (major_of(api.get_api_version()) != major_of(HWLOC_API_VERSION)) {
    return fail(std::string(kLibrary) +
                " has another version than the one that this program was built for");
  }
  return api;
}

Outcome<HwlocTopology> new_hwloc_topology(const HwlocApi& api) {
  hwloc_topology_t raw = nullptr;
  if (api.topology_init(&raw) != 0) return fail(std::string("hwloc_topology_init failed"));
  HwlocTopology topology(raw, HwlocDestroyer{&api});
  for (const char* const component : kUnwanted) {
    // An unknown component does no harm.
    (void)api.topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  if (api.topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0) {
    return fail(std::string("hwloc refuses to report PCI devices"));
  }
  return topology;
}

}  // namespace beeline::topology
