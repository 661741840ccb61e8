// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/query.h"

#include <endian.h>

#include <cstring>

#include "plugin/verbs/check.h"

namespace beeline::verbs {
namespace {

// If there is room, newer libraries write a longer ibv_port_attr than in the headers of the build:
// active_speed_ex follows port_cap_flags2 and its padding.
constexpr std::size_t kSpeedExOffset = 52;
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);
struct RoomyPortAttr {
  ibv_port_attr attr = {};
  std::byte more[64] = {};
};

}  // namespace

Result<ibv_device_attr> query_device(const Api& api, ibv_context* context) {
  ibv_device_attr attr = {};
  BL_TRY(from_errno(api.query_device(context, &attr), "query the device"));
  return attr;
}

// Does the same as the header's ibv_query_port, with the functions of the table.
Result<PortAttr> query_port(const Api& api, ibv_context* context, std::uint8_t port) {
  RoomyPortAttr roomy;
  int rc = 0;
  if (verbs_context* const extended = verbs_get_ctx_op(context, query_port)) {
    rc = extended->query_port(context, port, &roomy.attr, sizeof roomy);
  } else {
    // The exported function writes the structure of old versions, a prefix of the current one.
    rc =
        api.query_port_compat(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&roomy.attr));
  }
  BL_TRY(from_errno(rc, "query the port"));
  PortAttr result{.attr = roomy.attr};
  std::memcpy(&result.active_speed_ex, reinterpret_cast<const std::byte*>(&roomy) + kSpeedExOffset,
              sizeof result.active_speed_ex);
  return result;
}

Result<std::uint64_t> query_port_speed(const Api& api, ibv_context* context, std::uint8_t port) {
  if (api.query_port_speed == nullptr) return fail(Errc::kUnsupported, "query the port's speed");
  std::uint64_t hundreds = 0;
  BL_TRY(from_errno(api.query_port_speed(context, port, &hundreds), "query the port's speed"));
  return hundreds * 100;
}

Result<std::vector<ibv_gid_entry>> query_gid_table(const Api& api, ibv_context* context,
                                                   std::size_t max_entries) {
  if (api.query_gid_table == nullptr) return fail(Errc::kUnsupported, "query the GID table");
  std::vector<ibv_gid_entry> entries(max_entries);
  const ssize_t rc =
      api.query_gid_table(context, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  entries.resize(BL_TRY(from_count(rc, "query the GID table")));
  return entries;
}

Result<ibv_gid> query_gid(const Api& api, ibv_context* context, std::uint8_t port, int index) {
  ibv_gid gid = {};
  BL_TRY(from_minus_one(api.query_gid(context, port, index, &gid), "query a GID"));
  return gid;
}

Result<std::uint16_t> query_pkey(const Api& api, ibv_context* context, std::uint8_t port,
                                 int index) {
  __be16 pkey = 0;
  BL_TRY(from_minus_one(api.query_pkey(context, port, index, &pkey), "query a partition key"));
  return be16toh(pkey);
}

}  // namespace beeline::verbs
