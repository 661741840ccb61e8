// SPDX-License-Identifier: Apache-2.0
//
// errno is cleared before calls that report errors in it, because some providers fail without
// setting it.
#include "plugin/verbs/create.h"

#include "plugin/verbs/check.h"

namespace beeline::verbs {
namespace {

unsigned with_ordering(unsigned access, Ordering ordering) noexcept {
  return ordering == Ordering::kRelaxed ? access | IBV_ACCESS_RELAXED_ORDERING : access;
}

// Whether the reason may be max_inline. Providers use different errors for that.
bool is_size_refusal(int sys_errno) noexcept { return sys_errno == EINVAL || sys_errno == ENOMEM; }

}  // namespace

Result<DeviceList> DeviceList::get(const Api& api) {
  errno = 0;
  int count = 0;
  ibv_device** const list = BL_TRY(from_ptr(api.get_device_list(&count), "list RDMA devices"));
  return DeviceList(api, list, count > 0 ? static_cast<std::size_t>(count) : 0);
}

DeviceList::~DeviceList() {
  if (list_ != nullptr) api_->free_device_list(list_);
}

Result<Context> open_device(const Api& api, ibv_device* device) {
  errno = 0;
  return Context(api, BL_TRY(from_ptr(api.open_device(device), "open the RDMA device")));
}

Result<Pd> alloc_pd(const Api& api, ibv_context* context) {
  errno = 0;
  return Pd(api, BL_TRY(from_ptr(api.alloc_pd(context), "allocate a protection domain")));
}

Result<Td> alloc_td(const Api& api, ibv_context* context) {
  errno = 0;
  ibv_td_init_attr init = {};
  return Td(api, BL_TRY(from_ptr(api.alloc_td(context, &init), "allocate a thread domain")));
}

Result<Pd> alloc_parent_domain(const Api& api, ibv_pd* pd, ibv_td* td) {
  errno = 0;
  ibv_parent_domain_init_attr init = {};
  init.pd = pd;
  init.td = td;
  ibv_pd* const parent = api.alloc_parent_domain(pd->context, &init);
  return Pd(api, BL_TRY(from_ptr(parent, "allocate a parent domain")));
}

Result<Cq> create_cq_in(const Api& api, ibv_pd* parent_domain, int entries) {
  errno = 0;
  ibv_cq_init_attr_ex init = {};
  init.cqe = static_cast<std::uint32_t>(entries);
  // Some providers check the flags, others the parent domain.
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  init.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  init.parent_domain = parent_domain;
  ibv_cq_ex* const cq = BL_TRY(from_ptr(api.create_cq_ex(parent_domain->context, &init),
                                        "create a completion queue in a thread domain"));
  return Cq(api, ibv_cq_ex_to_cq(cq));
}

Result<Cq> create_cq(const Api& api, ibv_context* context, int entries) {
  errno = 0;
  ibv_cq* const cq = api.create_cq(context, entries, nullptr, nullptr, 0);
  return Cq(api, BL_TRY(from_ptr(cq, "create a completion queue")));
}

Result<MadeQp> create_qp(const Api& api, ibv_pd* pd, const QpShape& shape) {
  for (std::uint32_t max_inline = shape.max_inline;; max_inline /= 2) {
    // Initialized each time, because a provider that fails may have written to it.
    ibv_qp_init_attr init = {};
    init.send_cq = shape.send_cq;
    init.recv_cq = shape.recv_cq;
    init.cap = {.max_send_wr = shape.send_depth,
                .max_recv_wr = shape.recv_depth,
                .max_send_sge = shape.max_send_sge,
                .max_recv_sge = shape.max_recv_sge,
                .max_inline_data = max_inline};
    init.qp_type = IBV_QPT_RC;
    errno = 0;
    ibv_qp* const qp = api.create_qp(pd, &init);
    if (qp == nullptr && max_inline > 0 && is_size_refusal(errno)) continue;
    return MadeQp{Qp(api, BL_TRY(from_ptr(qp, "create a queue pair"))), init.cap};
  }
}

Result<Mr> reg_mr(const Api& api, ibv_pd* pd, void* address, std::size_t length, unsigned access,
                  Ordering ordering) {
  errno = 0;
  // ibv_reg_mr refuses optional access flags; the newer call ignores those it does not know.
  ibv_mr* const mr =
      ordering == Ordering::kRelaxed && api.reg_mr_iova2 != nullptr
          ? api.reg_mr_iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                             with_ordering(access, ordering))
          : api.reg_mr(pd, address, length, static_cast<int>(access));
  return Mr(api, BL_TRY(from_ptr(mr, "register memory")));
}

Result<Mr> reg_dmabuf_mr(const Api& api, ibv_pd* pd, int fd, std::uint64_t offset,
                         std::uint64_t address, std::size_t length, unsigned access,
                         Ordering ordering) {
  if (api.reg_dmabuf_mr == nullptr) {
    return fail(Errc::kUnsupported, "register a dma-buf: libibverbs is too old");
  }
  errno = 0;
  ibv_mr* const mr = api.reg_dmabuf_mr(pd, offset, length, address, fd,
                                       static_cast<int>(with_ordering(access, ordering)));
  return Mr(api, BL_TRY(from_ptr(mr, "register a dma-buf")));
}

}  // namespace beeline::verbs
