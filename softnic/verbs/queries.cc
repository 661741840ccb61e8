// SPDX-License-Identifier: Apache-2.0
// The verbs that query a device and its ports.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "softnic/nic/context.h"
#include "softnic/nic/limits.h"
#include "softnic/spec/link_rate.h"
#include "softnic/spec/sysfs_tree.h"
#include "softnic/verbs/extended_queries.h"

// verbs.h defines a macro of this name; older programs call the function.
#undef ibv_query_port

namespace softnic {
namespace {

constexpr std::uint8_t kPhysDisabled = 3;
constexpr std::uint8_t kPhysLinkUp = 5;

ibv_mtu mtu_code(std::uint32_t bytes) {
  ibv_mtu code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (128u << code) < bytes) code = static_cast<ibv_mtu>(code + 1);
  return code;
}

ibv_device_attr device_attributes(const Context& context) {
  ibv_device_attr attr = {};
  std::snprintf(attr.fw_ver, sizeof attr.fw_ver, "%s", kFirmwareVersion);
  attr.node_guid = htobe64(context.record().guid);
  attr.sys_image_guid = attr.node_guid;
  attr.max_mr_size = UINT64_MAX;
  attr.page_size_cap = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  attr.vendor_id = kPciVendor;
  attr.vendor_part_id = kPciDevice;
  attr.hw_ver = 1;
  attr.max_qp = kMaxQps - 1;
  attr.max_qp_wr = kMaxQpWr;
  attr.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                          IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD;
  attr.max_sge = kMaxSge;
  attr.max_sge_rd = kMaxSge;
  attr.max_cq = kMaxCqs - 1;
  attr.max_cqe = kMaxCqe;
  attr.max_mr = kMaxMrs - 1;
  attr.max_pd = 1 << 16;
  attr.max_qp_rd_atom = kMaxRdAtomic;
  attr.max_res_rd_atom = static_cast<int>(kMaxQps) * kMaxRdAtomic;
  attr.max_qp_init_rd_atom = kMaxRdAtomic;
  attr.atomic_cap = IBV_ATOMIC_HCA;
  attr.max_srq = kMaxSrqs - 1;
  attr.max_srq_wr = kMaxSrqWr;
  attr.max_srq_sge = kMaxSge;
  attr.max_pkeys = 1;
  attr.phys_port_cnt = static_cast<std::uint8_t>(context.record().port_count);
  return attr;
}

ibv_port_attr port_attributes(const PortRecord& port) {
  const bool up = (port.faults.load() & kFaultDown) == 0;
  const bool infiniband = port.link_layer == LinkLayer::kInfiniBand;
  ibv_port_attr attr = {};
  attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr.phys_state = up ? kPhysLinkUp : kPhysDisabled;
  attr.max_mtu = IBV_MTU_4096;
  attr.active_mtu = mtu_code(port.mtu);
  attr.gid_tbl_len = static_cast<int>(port.gid_table_len);
  attr.port_cap_flags = infiniband ? 0 : IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr.max_msg_sz = kMaxMessage;
  attr.pkey_tbl_len = 1;
  attr.lid = static_cast<std::uint16_t>(port.lid.load());
  attr.sm_lid = infiniband ? 1 : 0;
  attr.max_vl_num = 1;
  if (const LinkRate* rate = find_link_rate(port.gbps)) {
    attr.active_width = rate->active_width;
    attr.active_speed = rate->active_speed;
  }
  attr.link_layer = infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return attr;
}

// Returns 0, EINVAL, EIO on a dead context, or ENODATA for an empty table entry.
int read_gid(Context& context, std::uint32_t port_number, std::uint32_t index,
             ibv_gid_entry& entry) {
  if (context.is_dead()) return EIO;
  if (!context.has_port(port_number)) return EINVAL;
  const PortRecord& port = context.port(port_number);
  if (index >= port.gid_table_len) return EINVAL;
  const GidRecord& gid = port.gids[index];
  const std::uint32_t state = gid.state.load();
  if (state == 0) return ENODATA;
  const std::uint64_t halves[2] = {gid.high.load(), gid.low.load()};
  std::memcpy(entry.gid.raw, halves, sizeof halves);
  entry.gid_index = index;
  entry.port_num = port_number;
  entry.gid_type = state - 1;
  entry.ndev_ifindex = 0;
  return 0;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port_number, ibv_port_attr* attr,
               std::size_t attr_size) {
  Context& opened = Context::of(context);
  if (opened.is_dead()) return EIO;
  if (!opened.has_port(port_number)) return EINVAL;
  const ibv_port_attr facts = port_attributes(opened.port(port_number));
  std::memcpy(static_cast<void*>(attr), &facts, std::min(attr_size, sizeof facts));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t attr_size) {
  if (Context::of(context).is_dead()) return EIO;
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (attr_size < sizeof attr->orig_attr) return EINVAL;
  std::memset(static_cast<void*>(attr), 0, attr_size);
  attr->orig_attr = device_attributes(Context::of(context));
  return 0;
}

}  // namespace softnic

using softnic::Context;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  if (Context::of(context).is_dead()) return EIO;
  *attr = softnic::device_attributes(Context::of(context));
  return 0;
}

int ibv_query_port(ibv_context* context, std::uint8_t port_number, _compat_ibv_port_attr* attr) {
  // Callers of this function have an older structure, without the last member.
  return softnic::query_port(context, port_number, reinterpret_cast<ibv_port_attr*>(attr),
                             offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port_number, int index, ibv_gid* gid) {
  ibv_gid_entry entry = {};
  const int error = index < 0 ? EINVAL
                              : softnic::read_gid(Context::of(context), port_number,
                                                  static_cast<std::uint32_t>(index), entry);
  if (error != 0 && error != ENODATA) {
    errno = error;
    return -1;
  }
  *gid = entry.gid;  // zeros for an empty entry
  return 0;
}

int ibv_query_gid_type(ibv_context* context, std::uint8_t port_number, unsigned int index,
                       int* type) {
  ibv_gid_entry entry = {};
  const int error = softnic::read_gid(Context::of(context), port_number, index, entry);
  if (error != 0) {
    errno = error;
    return -1;
  }
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;  // this call has only two values
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port_number, std::uint32_t index,
                      ibv_gid_entry* entry, std::uint32_t flags, std::size_t entry_size) {
  if (flags != 0 || entry_size < sizeof *entry) return EOPNOTSUPP;
  return softnic::read_gid(Context::of(context), port_number, index, *entry);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                             std::uint32_t flags, std::size_t entry_size) {
  if (flags != 0 || entry_size < sizeof *entries) return -EOPNOTSUPP;
  Context& opened = Context::of(context);
  if (opened.is_dead()) return -EIO;
  std::size_t count = 0;
  for (std::uint32_t port = 1; opened.has_port(port); ++port) {
    for (std::uint32_t index = 0; index < opened.port(port).gid_table_len; ++index) {
      ibv_gid_entry entry = {};
      if (softnic::read_gid(opened, port, index, entry) != 0) continue;
      if (count == max_entries) return -EINVAL;
      entries[count++] = entry;
    }
  }
  return static_cast<ssize_t>(count);
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port_number, int index, __be16* pkey) {
  const Context& opened = Context::of(context);
  if (opened.is_dead() || !opened.has_port(port_number) || index != 0) {
    errno = opened.is_dead() ? EIO : EINVAL;
    return -1;
  }
  *pkey = htobe16(static_cast<std::uint16_t>(opened.port(port_number).pkey.load()));
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port_number, __be16 pkey) {
  __be16 found = 0;
  if (ibv_query_pkey(context, port_number, 0, &found) != 0) return -1;
  if (found != pkey) {
    errno = EINVAL;
    return -1;
  }
  return 0;
}

}  // extern "C"
