// SPDX-License-Identifier: Apache-2.0
//
// The devices and their attributes. NULLVERBS_DEVICES sets their number (default 1), and
// NULLVERBS_LINK=ib makes them InfiniBand instead of RoCE.
#include <endian.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/support/nullverbs/device_limits.h"
#include "tests/support/nullverbs/objects.h"
#include "tests/support/nullverbs/operations.h"

// verbs.h wraps it in a macro.
#undef ibv_query_port

namespace nullverbs {
namespace {

constexpr int kMostDevices = 8;
constexpr std::uint64_t kGuid = 0x0200'00ff'fe00'0100;
constexpr std::uint32_t kLoopback = 1;  // the kernel's index of "lo"

bool is_infiniband() {
  const char* const link = std::getenv("NULLVERBS_LINK");
  return link != nullptr && std::string_view(link) == "ib";
}

int device_count() {
  const char* const text = std::getenv("NULLVERBS_DEVICES");
  return std::clamp(text != nullptr ? std::atoi(text) : 1, 1, kMostDevices);
}

std::array<Device, kMostDevices>& all_devices() {
  static std::array<Device, kMostDevices>& devices = [] {
    auto* const made = new std::array<Device, kMostDevices>();
    for (std::uint32_t i = 0; i < kMostDevices; ++i) {
      Device& device = (*made)[i];
      device.index = i;
      device.node_type = IBV_NODE_CA;
      device.transport_type = IBV_TRANSPORT_IB;
      std::snprintf(device.name, sizeof device.name, "null%u", i);
      std::snprintf(device.dev_name, sizeof device.dev_name, "null%u", i);
    }
    return std::ref(*made);
  }();
  return devices;
}

ibv_device_attr device_attributes(const Context& context) {
  ibv_device_attr attr = {};
  attr.node_guid = attr.sys_image_guid = htobe64(kGuid + context.device().index);
  attr.max_mr_size = UINT64_MAX;
  attr.page_size_cap = 4096;
  attr.max_qp = 1 << 16;
  attr.max_qp_wr = kMaxQpWr;
  attr.max_sge = attr.max_sge_rd = kMaxSge;
  attr.max_cq = 1 << 16;
  attr.max_cqe = kMaxCqe;
  attr.max_mr = 1 << 17;
  attr.max_pd = 1 << 15;
  attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = 16;
  attr.max_pkeys = 1;
  attr.phys_port_cnt = 1;
  return attr;
}

ibv_port_attr port_attributes(const Context& context) {
  ibv_port_attr attr = {};
  attr.state = IBV_PORT_ACTIVE;
  attr.max_mtu = attr.active_mtu = IBV_MTU_4096;
  attr.gid_tbl_len = 1;
  attr.max_msg_sz = kMaxMessage;
  attr.pkey_tbl_len = 1;
  attr.lid = is_infiniband() ? static_cast<std::uint16_t>(1 + context.device().index) : 0;
  attr.sm_lid = is_infiniband() ? 1 : 0;
  attr.max_vl_num = 1;
  attr.active_width = 2;   // 4 lanes
  attr.active_speed = 64;  // HDR
  attr.phys_state = 5;     // link up
  attr.link_layer = is_infiniband() ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return attr;
}

// 10.99.0.x for RoCE.
ibv_gid gid_of(const Context& context) {
  ibv_gid gid = {};
  const auto number = static_cast<std::uint8_t>(1 + context.device().index);
  if (is_infiniband()) {
    gid.global.subnet_prefix = htobe64(0xfe80'0000'0000'0000);
    gid.global.interface_id = htobe64(kGuid + context.device().index);
  } else {
    constexpr std::uint8_t kNet[] = {0xff, 0xff, 10, 99, 0};
    std::memcpy(gid.raw + 10, kNet, sizeof kNet);
    gid.raw[15] = number;
  }
  return gid;
}

void install_operations(Context& context) {
  context.context.ops.poll_cq = poll_cq;
  context.context.ops.req_notify_cq = req_notify_cq;
  context.context.ops.post_send = post_send;
  context.context.ops.post_recv = post_recv;
  context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.sz = sizeof(verbs_context);
  context.query_port = query_port;
  context.query_device_ex = query_device_ex;
  context.create_qp_ex = create_qp_ex;
  context.create_cq_ex = create_cq_ex;
  context.alloc_td = alloc_td;
  context.dealloc_td = dealloc_td;
  context.alloc_parent_domain = alloc_parent_domain;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  if (port != 1) return EINVAL;
  const ibv_port_attr facts = port_attributes(Context::of(context));
  std::memcpy(static_cast<void*>(attr), &facts, std::min(size, sizeof facts));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input*,
                    ibv_device_attr_ex* attr, std::size_t size) {
  if (size < sizeof attr->orig_attr) return EINVAL;
  std::memset(static_cast<void*>(attr), 0, size);
  attr->orig_attr = device_attributes(Context::of(context));
  return 0;
}

}  // namespace nullverbs

using nullverbs::Context;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  const int devices = nullverbs::device_count();
  auto** const list = new ibv_device* [static_cast<std::size_t>(devices) + 1] {};
  for (int i = 0; i < devices; ++i) {
    list[i] = &nullverbs::all_devices()[static_cast<std::size_t>(i)];
  }
  if (count != nullptr) *count = devices;
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
__be64 ibv_get_device_guid(ibv_device* device) {
  return htobe64(nullverbs::kGuid + static_cast<nullverbs::Device*>(device)->index);
}

ibv_context* ibv_open_device(ibv_device* device) {
  const int events = ::eventfd(0, EFD_CLOEXEC);
  if (events < 0) return nullptr;
  auto* const context = new Context{};
  nullverbs::install_operations(*context);
  context->context.device = device;
  context->context.async_fd = events;
  context->context.cmd_fd = -1;
  context->context.num_comp_vectors = 1;
  return &context->context;
}

int ibv_close_device(ibv_context* context) {
  ::close(context->async_fd);
  delete &Context::of(context);
  return 0;
}

// There are no events: a caller that waits for one waits for ever.
int ibv_get_async_event(ibv_context* context, ibv_async_event*) {
  std::uint64_t nothing = 0;
  if (::read(context->async_fd, &nothing, sizeof nothing) >= 0) errno = EAGAIN;
  return -1;
}
void ibv_ack_async_event(ibv_async_event*) {}

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  *attr = nullverbs::device_attributes(Context::of(context));
  return 0;
}

int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  // Callers of the exported function have a structure without the last member.
  return nullverbs::query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                               offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *gid = nullverbs::gid_of(Context::of(context));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t room,
                             std::uint32_t, std::size_t entry_size) {
  if (room < 1 || entry_size < sizeof(ibv_gid_entry)) return -EINVAL;
  const bool is_infiniband = nullverbs::is_infiniband();
  *entries = {.gid = nullverbs::gid_of(Context::of(context)),
              .gid_index = 0,
              .port_num = 1,
              .gid_type = static_cast<std::uint32_t>(is_infiniband ? IBV_GID_TYPE_IB
                                                                   : IBV_GID_TYPE_ROCE_V2),
              .ndev_ifindex = is_infiniband ? 0 : nullverbs::kLoopback};
  return 1;
}

int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(0xffff);
  return 0;
}

}  // extern "C"
