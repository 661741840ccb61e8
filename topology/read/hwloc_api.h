// SPDX-License-Identifier: Apache-2.0
//
// The functions of hwloc, loaded with dlopen, since a host may not have hwloc. The types come from
// its header at build time; include this file only if BL_HAVE_HWLOC is defined.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

#include "common/base/problem.h"

// Every hwloc 2 has all of these.
#define BL_HWLOC_FUNCTIONS(X)                                         \
  X(get_api_version, hwloc_get_api_version)                           \
  X(topology_init, hwloc_topology_init)                               \
  X(topology_destroy, hwloc_topology_destroy)                         \
  X(topology_load, hwloc_topology_load)                               \
  X(topology_abi_check, hwloc_topology_abi_check)                     \
  X(topology_is_thissystem, hwloc_topology_is_thissystem)             \
  X(topology_set_flags, hwloc_topology_set_flags)                     \
  X(topology_set_components, hwloc_topology_set_components)           \
  X(topology_set_io_types_filter, hwloc_topology_set_io_types_filter) \
  X(topology_set_xmlbuffer, hwloc_topology_set_xmlbuffer)             \
  X(get_obj_by_depth, hwloc_get_obj_by_depth)                         \
  X(get_type_depth, hwloc_get_type_depth)                             \
  X(get_nbobjs_by_depth, hwloc_get_nbobjs_by_depth)                   \
  X(bitmap_list_snprintf, hwloc_bitmap_list_snprintf)

namespace beeline::topology {

// Lifecycle: loaded once and never unloaded, because hwloc keeps its plugins loaded.
// Threads: read-only after loading.
struct HwlocApi {
// A member cannot be declared in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define BL_HWLOC_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
  BL_HWLOC_FUNCTIONS(BL_HWLOC_MEMBER)
#undef BL_HWLOC_MEMBER
};

Outcome<HwlocApi> load_hwloc();

struct HwlocDestroyer {
  const HwlocApi* api = nullptr;
  void operator()(hwloc_topology_t topology) const noexcept { api->topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocDestroyer>;

// A topology that is initialized but not loaded: with I/O objects, and without the components that
// would start a GPU driver.
Outcome<HwlocTopology> new_hwloc_topology(const HwlocApi& api);

}  // namespace beeline::topology
