// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verbs_fixture.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "softnic/fabric/port_command.h"

namespace beeline::test {
namespace {

softnic::FabricSpec with_clock(double clock_scale) {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.clock_scale = clock_scale;
  return spec;
}

softnic::FabricSpec completed(softnic::FabricSpec spec) {
  softnic::complete(spec);
  return spec;
}

}  // namespace

TestFabric::TestFabric(const softnic::FabricSpec* spec) : name_(fresh_name()) {
  auto held = softnic::Holder::hold(name_, spec);
  if (!held) throw MustError("cannot hold fabric " + name_ + ": " + held.error().text);
  holder_.emplace(std::move(held).value());
  setenv("SOFTNIC_FABRIC", name_.c_str(), 1);
  unsetenv("SOFTNIC_HOST");
}

TestFabric::TestFabric() : TestFabric(nullptr) {}

TestFabric::TestFabric(double clock_scale) : TestFabric(with_clock(clock_scale)) {}

TestFabric::TestFabric(softnic::FabricSpec spec)
    : TestFabric(&(spec = completed(std::move(spec)))) {}

TestFabric::~TestFabric() {
  unsetenv("SOFTNIC_FABRIC");
  unsetenv("SOFTNIC_HOST");
  CHECK(handles_left.exchange(0) == 0);
}

void TestFabric::command(const std::string& target, const std::string& text) const {
  const auto order = softnic::read_targeted_command(fabric(), target, text);
  if (!order) throw MustError(order.error().text);
  softnic::apply(fabric(), *order);
}

std::string TestFabric::fresh_name() {
  static std::atomic<unsigned> counter{0};
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

void TestFabric::choose_host(const std::string& host) { setenv("SOFTNIC_HOST", host.c_str(), 1); }

ContextPtr open_device(const std::string& name) {
  const DeviceList list;
  for (int i = 0; i < list.count(); ++i) {
    if (name != ibv_get_device_name(list[i])) continue;
    ContextPtr context(ibv_open_device(list[i]));
    if (context == nullptr) throw MustError("cannot open " + name);
    return context;
  }
  throw MustError("no device " + name + " among " + std::to_string(list.count()));
}

CqPtr make_cq(ibv_context* context, int cqe) {
  CqPtr cq(ibv_create_cq(context, cqe, nullptr, nullptr, 0));
  BL_MUST(cq != nullptr);
  return cq;
}

Nic::Nic(const std::string& device, int cqe)
    : context(open_device(device)),
      pd(ibv_alloc_pd(context.get())),
      send_cq(make_cq(context.get(), cqe)),
      recv_cq(make_cq(context.get(), cqe)) {
  BL_MUST(pd != nullptr);
}

ibv_qp_init_attr init_attr(const Nic& nic, const QpShape& shape) {
  ibv_qp_init_attr attr{};
  attr.send_cq = nic.send_cq.get();
  attr.recv_cq = nic.recv_cq.get();
  attr.cap = {shape.send_depth, shape.recv_depth, shape.max_sge, shape.max_sge, shape.max_inline};
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = shape.all_signaled ? 1 : 0;
  return attr;
}

QpPtr make_qp(const Nic& nic, const QpShape& shape, ibv_qp_cap* cap) {
  ibv_qp_init_attr attr = init_attr(nic, shape);
  QpPtr qp(ibv_create_qp(nic.pd.get(), &attr));
  BL_MUST(qp != nullptr);
  if (cap != nullptr) *cap = attr.cap;
  return qp;
}

}  // namespace beeline::test
