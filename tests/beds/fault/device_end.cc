// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/fault/device_end.h"

#include <string_view>

namespace beeline::test {
namespace {

ContextPtr opened(std::string_view name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  BL_MUST(list != nullptr);
  ContextPtr context;
  for (int i = 0; i < count; ++i) {
    if (name == ibv_get_device_name(list[i])) context.reset(ibv_open_device(list[i]));
  }
  ibv_free_device_list(list);
  BL_MUST(context != nullptr);
  return context;
}

template <class T>
T* must_exist(T* object) {
  BL_MUST(object != nullptr);
  return object;
}

}  // namespace

CqPtr make_cq_of(ibv_context* context, int entries) {
  return CqPtr(must_exist(ibv_create_cq(context, entries, nullptr, nullptr, 0)));
}

QpPtr make_shared_cq_qp(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.cap = {64, 64, 4, 4, 64};
  attr.qp_type = IBV_QPT_RC;
  return QpPtr(must_exist(ibv_create_qp(pd, &attr)));
}

DeviceEnd::DeviceEnd(const std::string& device)
    : context(opened(device)),
      pd(must_exist(ibv_alloc_pd(context.get()))),
      cq(make_cq_of(context.get(), 256)),
      memory(pd.get(), kBytes),
      owned_qp(make_shared_cq_qp(pd.get(), cq.get())),
      qp(owned_qp.get()),
      ledger(cq.get()) {}

void DeviceEnd::connect_to(Link& link) {
  const auto card = link.exchange(DeviceEndCard{address_of(qp, kQuickWire), memory.all()});
  theirs = card.memory;
  connect(qp, card.address, kQuickWire);
  link.meet();
}

void DeviceEnd::settle() {
  const ibv_qp_state state = state_of(qp);
  if (state == IBV_QPS_RESET) return;  // the peer died before there was a connection
  if (state != IBV_QPS_ERR) BL_MUST_OK(modify_state(qp, IBV_QPS_ERR));
  ledger.settle_all();
  BL_MUST(memory.guards_intact());
}

}  // namespace beeline::test
