// SPDX-License-Identifier: Apache-2.0
//
// Functions that create verbs objects. Each returns an owning handle or the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/verbs/handles.h"

namespace beeline::verbs {

// The devices of this host. An open context keeps its device valid after the list is freed.
class DeviceList {
 public:
  static Result<DeviceList> get(const Api& api);
  DeviceList(DeviceList&& other) noexcept
      : api_(other.api_), list_(std::exchange(other.list_, nullptr)), count_(other.count_) {}
  DeviceList& operator=(DeviceList&&) = delete;
  ~DeviceList();

  std::span<ibv_device* const> devices() const noexcept { return {list_, count_}; }

 private:
  DeviceList(const Api& api, ibv_device** list, std::size_t count) noexcept
      : api_(&api), list_(list), count_(count) {}

  const Api* api_;
  ibv_device** list_;
  std::size_t count_;
};

Result<Context> open_device(const Api& api, ibv_device* device);
Result<Pd> alloc_pd(const Api& api, ibv_context* context);

// Objects that only one thread at a time uses can be created in a parent domain with a thread
// domain: providers that support it then take no locks. Memory that is registered in `pd` can be
// used there.
Result<Td> alloc_td(const Api& api, ibv_context* context);
Result<Pd> alloc_parent_domain(const Api& api, ibv_pd* pd, ibv_td* td);

// Without a completion channel, since the plugin polls. `entries` is the minimum size.
Result<Cq> create_cq(const Api& api, ibv_context* context, int entries);
Result<Cq> create_cq_in(const Api& api, ibv_pd* parent_domain, int entries);

// The queues and sizes of a reliable connected QP. Sends are signaled only on request
// (sq_sig_all = 0).
struct QpShape {
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  std::uint32_t send_depth = 128;
  std::uint32_t recv_depth = 128;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline = 0;  // create_qp may reduce it
};

struct MadeQp {
  Qp qp;                    // in RESET
  ibv_qp_cap granted = {};  // its sizes; max_inline_data may be above or below max_inline
};

// Devices do not report their limit for inline data. If the device refuses max_inline, it is halved
// until the device accepts it, down to 0. Other errors are returned.
Result<MadeQp> create_qp(const Api& api, ibv_pd* pd, const QpShape& shape);

enum class Ordering : std::uint8_t {
  kStrict,   // writes arrive in order: for control memory and flags
  kRelaxed,  // PCIe may reorder writes: for payload. Same as kStrict if the library is too old
};

// `access` is a combination of IBV_ACCESS_* without IBV_ACCESS_RELAXED_ORDERING.
Result<Mr> reg_mr(const Api& api, ibv_pd* pd, void* address, std::size_t length, unsigned access,
                  Ordering ordering);

// `offset` is the position of the byte at `address` in the dma-buf. The descriptor stays the
// caller's, who may close it when this returns. kUnsupported if the library or the driver cannot do
// it.
Result<Mr> reg_dmabuf_mr(const Api& api, ibv_pd* pd, int fd, std::uint64_t offset,
                         std::uint64_t address, std::size_t length, unsigned access,
                         Ordering ordering);

}  // namespace beeline::verbs
