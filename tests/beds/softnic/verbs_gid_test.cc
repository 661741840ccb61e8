// SPDX-License-Identifier: Apache-2.0
//
// The four ways to read a GID table, which must agree.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/support/verbs_fixture.h"

// Not in <infiniband/verbs.h>: rdma-core's driver.h has it, and programs import it all the same.
extern "C" int ibv_query_gid_type(ibv_context* context, std::uint8_t port_num, unsigned int index,
                                  unsigned int* type);

using namespace beeline::test;

namespace {

constexpr unsigned kSysfsIbOrRoceV1 = 0;  // enum ibv_gid_type_sysfs
constexpr unsigned kSysfsRoceV2 = 1;

bool is_same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool is_ipv4_mapped(const ibv_gid& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xFE && gid.raw[1] == 0x80; }

int table_length(ibv_context* context) {
  ibv_port_attr port{};
  BL_MUST_OK(ibv_query_port(context, 1, &port));
  return port.gid_tbl_len;
}

std::vector<ibv_gid_entry> whole_table(ibv_context* context) {
  std::vector<ibv_gid_entry> entries(static_cast<std::size_t>(table_length(context)));
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  BL_MUST(count >= 0 && static_cast<std::size_t>(count) <= entries.size());
  entries.resize(static_cast<std::size_t>(count));
  return entries;
}

}  // namespace

TEST_CASE("gid: a RoCE port has link-local v2 at 1 and IPv4 v2 at 3", "[softnic][gid]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  ibv_gid_entry entry{};
  REQUIRE(ibv_query_gid_ex(context.get(), 1, 1, &entry, 0) == 0);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(is_link_local(entry.gid));
  REQUIRE(ibv_query_gid_ex(context.get(), 1, 3, &entry, 0) == 0);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(is_ipv4_mapped(entry.gid));
  CHECK(entry.gid_index == 3);
  CHECK(entry.port_num == 1);
}

TEST_CASE("gid: the table query returns exactly the entries that exist", "[softnic][gid]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  std::vector<ibv_gid_entry> table = whole_table(context.get());
  std::set<std::uint32_t> listed;
  for (const ibv_gid_entry& entry : table) {
    INFO("index " << entry.gid_index);
    CHECK(listed.insert(entry.gid_index).second);
    ibv_gid_entry single{};
    REQUIRE(ibv_query_gid_ex(context.get(), entry.port_num, entry.gid_index, &single, 0) == 0);
    CHECK(std::memcmp(&single, &entry, sizeof(entry)) == 0);
    ibv_gid plain{};
    REQUIRE(ibv_query_gid(context.get(), 1, static_cast<int>(entry.gid_index), &plain) == 0);
    CHECK(is_same(plain, entry.gid));
    unsigned type = 77;
    REQUIRE(ibv_query_gid_type(context.get(), 1, entry.gid_index, &type) == 0);
    CHECK(type == (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? kSysfsRoceV2 : kSysfsIbOrRoceV1));
  }
  CHECK(listed.count(1) == 1);
  CHECK(listed.count(3) == 1);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(table_length(context.get())); ++i) {
    if (listed.count(i) != 0) continue;
    ibv_gid_entry single{};
    CHECK(ibv_query_gid_ex(context.get(), 1, i, &single, 0) == ENODATA);
    ibv_gid plain{};
    plain.raw[5] = 1;
    CHECK(ibv_query_gid(context.get(), 1, static_cast<int>(i), &plain) == 0);
    CHECK(is_same(plain, ibv_gid{}));
  }
  CHECK(ibv_query_gid_table(context.get(), table.data(), table.size(), 1) < 0);  // flags must be 0
}

TEST_CASE("gid: an index outside of the table is an error", "[softnic][gid]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  const int length = table_length(context.get());
  ibv_gid gid{};
  CHECK(ibv_query_gid(context.get(), 1, length, &gid) == -1);
  CHECK(ibv_query_gid(context.get(), 1, -1, &gid) == -1);
  ibv_gid_entry entry{};
  CHECK(ibv_query_gid_ex(context.get(), 1, static_cast<std::uint32_t>(length), &entry, 0) ==
        EINVAL);
  CHECK(ibv_query_gid_ex(context.get(), 9, 0, &entry, 0) == EINVAL);
  unsigned type = 0;
  CHECK(ibv_query_gid_type(context.get(), 1, static_cast<unsigned>(length), &type) == -1);
}

TEST_CASE("gid: no two ports of a fabric share a GID", "[softnic][gid]") {
  const TestFabric fabric;
  std::set<std::string> seen;
  for (const char* host : {"h0", "h1"}) {
    TestFabric::choose_host(host);
    for (const char* name : {"softnic0", "softnic1"}) {
      const ContextPtr context = open_device(name);
      ibv_gid gid{};
      REQUIRE(ibv_query_gid(context.get(), 1, 3, &gid) == 0);
      seen.emplace(reinterpret_cast<const char*>(gid.raw), sizeof(gid.raw));
    }
  }
  CHECK(seen.size() == 4);
}
