/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin interface as a C compiler sees it. The headers assert their layouts themselves. This file
 * shows that they are valid C, and returns the sizes that the types have in C.
 */
#include "include/nccl/net.h"

struct NcclAbiSizes {
  size_t properties;
  size_t table;
};

struct NcclAbiSizes nccl_abi_sizes_in_c(int version);

#define SIZES(version) \
  (struct NcclAbiSizes) { sizeof(ncclNetProperties_v##version##_t), sizeof(ncclNet_v##version##_t) }

struct NcclAbiSizes nccl_abi_sizes_in_c(int version) {
  switch (version) {
    case 6: return SIZES(6);
    case 7: return SIZES(7);
    case 8: return SIZES(8);
    case 9: return SIZES(9);
    case 10: return SIZES(10);
    case 11: return SIZES(11);
    case 12: return SIZES(12);
    default: return (struct NcclAbiSizes){0, 0};
  }
}
