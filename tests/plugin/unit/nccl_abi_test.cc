// SPDX-License-Identifier: Apache-2.0
//
// The declarations of NCCL's plugin interface in include/nccl have NCCL's sizes, in C and in C++.
#include "include/nccl/net.h"

#include <cstddef>

#include "tests/support/catch.h"

extern "C" {
struct NcclAbiSizes {
  size_t properties;
  size_t table;
};
NcclAbiSizes nccl_abi_sizes_in_c(int version);
}

namespace {

struct Expected {
  int version;
  NcclAbiSizes cpp;
  NcclAbiSizes nccl;  // as compiled from NCCL's own headers
};

template <class Properties, class Table>
constexpr NcclAbiSizes kSizes{sizeof(Properties), sizeof(Table)};

constexpr Expected kExpected[] = {
    {6, kSizes<ncclNetProperties_v6_t, ncclNet_v6_t>, {48, 136}},
    {7, kSizes<ncclNetProperties_v7_t, ncclNet_v7_t>, {56, 152}},
    {8, kSizes<ncclNetProperties_v8_t, ncclNet_v8_t>, {64, 152}},
    {9, kSizes<ncclNetProperties_v9_t, ncclNet_v9_t>, {104, 160}},
    {10, kSizes<ncclNetProperties_v10_t, ncclNet_v10_t>, {104, 160}},
    {11, kSizes<ncclNetProperties_v11_t, ncclNet_v11_t>, {112, 176}},
    {12, kSizes<ncclNetProperties_v12_t, ncclNet_v12_t>, {128, 176}},
};

TEST_CASE("nccl_abi: every version has NCCL's sizes, in C and in C++", "[unit][nccl]") {
  for (const Expected& expected : kExpected) {
    CAPTURE(expected.version);
    const NcclAbiSizes c = nccl_abi_sizes_in_c(expected.version);
    CHECK(c.properties == expected.nccl.properties);
    CHECK(c.table == expected.nccl.table);
    CHECK(expected.cpp.properties == expected.nccl.properties);
    CHECK(expected.cpp.table == expected.nccl.table);
  }
}

TEST_CASE("nccl_abi: results and log levels are the numbers NCCL uses", "[unit][nccl]") {
  CHECK(ncclRemoteError == 6);
  CHECK(ncclTimeout == 8);
  CHECK(NCCL_LOG_WARN == 2);
  CHECK(NCCL_LOG_TRACE == 5);
  CHECK(NCCL_NET == 0x10);
  CHECK(NCCL_NET_HANDLE_MAXSIZE == 128);
}

}  // namespace
