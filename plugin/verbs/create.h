// SPDX-License-Identifier: Apache-2.0
//
// Making verbs objects: each function returns an owner or the error, so that an early return leaks
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/verbs/handles.h"

namespace beeline::verbs {

// The devices of this host. An open context keeps its device alive after the list is gone.
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

// What one thread at a time uses may be made in a parent domain that has a thread domain: providers
// that know it take no locks there. Memory that is registered in `pd` serves it.
Result<Td> alloc_td(const Api& api, ibv_context* context);
Result<Pd> alloc_parent_domain(const Api& api, ibv_pd* pd, ibv_td* td);

// Without a completion channel: the plugin polls. `entries` is the least that it holds.
Result<Cq> create_cq(const Api& api, ibv_context* context, int entries);
Result<Cq> create_cq_in(const Api& api, ibv_pd* parent_domain, int entries);

// What a reliable connected QP shall hold. Never signals on its own (sq_sig_all = 0).
struct QpShape {
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  std::uint32_t send_depth = 128;
  std::uint32_t recv_depth = 128;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline = 0;  // a wish: see create_qp
};

struct MadeQp {
  Qp qp;                    // in RESET
  ibv_qp_cap granted = {};  // what it really holds; max_inline_data may be above or below the wish
};

// No device tells its inline limit: when the wish is refused it is halved until the device takes
// it, down to none. Other refusals are returned.
Result<MadeQp> create_qp(const Api& api, ibv_pd* pd, const QpShape& shape);

enum class Ordering : std::uint8_t {
  kStrict,   // writes land in order: control memory, flags
  kRelaxed,  // PCIe may reorder writes: payload. Where the library is too old it means kStrict
};

// `access` is made of IBV_ACCESS_*, without IBV_ACCESS_RELAXED_ORDERING.
Result<Mr> reg_mr(const Api& api, ibv_pd* pd, void* address, std::size_t length, unsigned access,
                  Ordering ordering);

// `offset` is where in the dma-buf the byte at `address` lies. The descriptor stays the caller's
// and may be closed when this returns. kUnsupported where the library or the driver cannot.
Result<Mr> reg_dmabuf_mr(const Api& api, ibv_pd* pd, int fd, std::uint64_t offset,
                         std::uint64_t address, std::size_t length, unsigned access,
                         Ordering ordering);

}  // namespace beeline::verbs
