// SPDX-License-Identifier: Apache-2.0
//
// A plugin's function table in the shape of the newest version, whatever version the plugin
// exports. An older table gets thin functions around it that do what NCCL's own adapters do: they
// drop the arguments that the version does not have, and convert sizes.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "include/nccl/net.h"

namespace beeline::nccl {

inline constexpr int kOldestAbi = 6;
inline constexpr int kNewestAbi = 12;

// The types of one version.
template <int kAbi>
struct Version;
#define BL_NCCL_VERSION(number)                         \
  template <>                                           \
  struct Version<number> {                              \
    using Table = ncclNet_v##number##_t;                \
    using Properties = ncclNetProperties_v##number##_t; \
  }
BL_NCCL_VERSION(6);
BL_NCCL_VERSION(7);
BL_NCCL_VERSION(8);
BL_NCCL_VERSION(9);
BL_NCCL_VERSION(10);
BL_NCCL_VERSION(11);
BL_NCCL_VERSION(12);
#undef BL_NCCL_VERSION

// Calls `act` with the number as a type: `act(std::integral_constant<int, 8>{})`. A number that is
// not a known version counts as the newest.
template <class Act>
decltype(auto) with_version(int abi, Act&& act) {
  switch (abi) {
    case 6: return act(std::integral_constant<int, 6>{});
    case 7: return act(std::integral_constant<int, 7>{});
    case 8: return act(std::integral_constant<int, 8>{});
    case 9: return act(std::integral_constant<int, 9>{});
    case 10: return act(std::integral_constant<int, 10>{});
    case 11: return act(std::integral_constant<int, 11>{});
    default: return act(std::integral_constant<int, kNewestAbi>{});
  }
}

// "ncclNetPlugin_v8"
std::string table_symbol(int abi);

// True if the size can be passed where older versions take an int. The size that a negative int
// becomes can: it reaches the plugin as that int.
constexpr bool fits_int(size_t size) noexcept {
  return static_cast<size_t>(static_cast<int>(size)) == size;
}

// `table` is what dlsym found under table_symbol(abi). A process can use only one table of each
// version, since the functions around it are static. A size that does not fit returns
// ncclInvalidArgument.
//
// makeVDevice is null where the plugin has none, as it is up to v8. Up to v11 it merges at most
// four devices, and for more returns ncclInternalError, as NCCL does.
//
// Up to v10 there is no context. In v10 the configuration belongs to each connect: init returns its
// `config` as the context, and connect passes that on, so it has to live as long.
ncclNet_v12_t adapt_table(int abi, const void* table);

// "ncclSystemError"
const char* to_string(ncclResult_t result) noexcept;

}  // namespace beeline::nccl
