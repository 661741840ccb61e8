// SPDX-License-Identifier: Apache-2.0
// The verbs for the device list, and for opening and closing devices.
#include <endian.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "softnic/fabric/device_presence.h"
#include "softnic/nic/context.h"
#include "softnic/nic/cq.h"
#include "softnic/nic/event_pipe.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/runtime.h"
#include "softnic/verbs/extended_queries.h"

namespace softnic {

// An entry of the list that ibv_get_device_list returns.
struct Device : ibv_device {
  // `the_removals` as for Context: an entry from before a removal cannot be opened afterwards.
  Device(std::shared_ptr<Runtime> the_runtime, std::uint32_t the_index, std::uint32_t the_removals);

  static Device& of(ibv_device* device) noexcept { return *static_cast<Device*>(device); }
  DeviceRecord& record() const noexcept { return runtime->header().devices[index]; }

  // Device lists and open contexts hold references. The last one deletes the object.
  void add_reference() noexcept { references_.fetch_add(1); }
  void drop_reference() noexcept {
    if (references_.fetch_sub(1) == 1) delete this;
  }

  // Provider libraries (libmlx5) read their own fields behind an ibv_device to see whether the
  // device is theirs. They find zeros.
  const std::array<std::byte, 512> provider_padding{};
  const std::shared_ptr<Runtime> runtime;
  const std::uint32_t index;  // into FabricHeader::devices
  const std::uint32_t removals_at_open;

 private:
  std::atomic<int> references_{1};
};

namespace {

template <std::size_t kSize>
void copy_text(char (&to)[kSize], const std::string& from) {
  std::snprintf(to, kSize, "%s", from.c_str());
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) { return Cq::of(cq).poll(count, wc); }
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return Qp::of(qp).post_send(wr, bad);
}
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return Qp::of(qp).post_receive(wr, bad);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  Cq::of(cq).arm(solicited_only != 0);
  return 0;
}
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return Srq::of(srq).post(wr, bad);
}

void install_operations(Context& context) {
  context.context.ops.poll_cq = poll_cq;
  context.context.ops.req_notify_cq = req_notify_cq;
  context.context.ops.post_send = post_send;
  context.context.ops.post_recv = post_recv;
  context.context.ops.post_srq_recv = post_srq_recv;
  context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.sz = sizeof(verbs_context);
  context.query_port = query_port;
  context.query_device_ex = query_device_ex;
  context.create_qp_ex = create_qp_ex;
  context.create_cq_ex = create_cq_ex;
}

}  // namespace

Device::Device(std::shared_ptr<Runtime> the_runtime, std::uint32_t the_index,
               std::uint32_t the_removals)
    : ibv_device{},
      runtime(std::move(the_runtime)),
      index(the_index),
      removals_at_open(the_removals) {
  const DeviceRecord& facts = runtime->header().devices[index];
  const std::string root = runtime->sysfs_root();
  const std::string uverbs = "uverbs" + std::to_string(facts.index_on_host);
  node_type = IBV_NODE_CA;
  transport_type = IBV_TRANSPORT_IB;
  copy_text(name, facts.name);
  copy_text(dev_name, uverbs);
  copy_text(dev_path, root + "/class/infiniband_verbs/" + uverbs);
  copy_text(ibdev_path, root + "/class/infiniband/" + facts.name);
}

}  // namespace softnic

using softnic::Context;
using softnic::Device;
using softnic::Runtime;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 0;
  const auto runtime = Runtime::get();
  if (!runtime) {
    // Without a fabric, the errno is that of a kernel without RDMA.
    const int error = errno == ENOENT || errno == 0 ? ENOSYS : errno;
    std::fprintf(stderr, "softnic: %s\n", runtime.error().text.c_str());
    errno = error;
    return nullptr;
  }
  const softnic::HostRecord& host = (*runtime)->host();
  auto** list = new ibv_device* [host.device_count + 1] {};
  int listed = 0;
  for (std::uint32_t i = host.first_device; i < host.first_device + host.device_count; ++i) {
    const std::uint32_t removals = (*runtime)->header().devices[i].removals.load();
    if (!softnic::is_removed_count(removals)) list[listed++] = new Device(*runtime, i, removals);
  }
  if (count != nullptr) *count = listed;
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  for (ibv_device** device = list; *device != nullptr; ++device)
    Device::of(*device).drop_reference();
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

__be64 ibv_get_device_guid(ibv_device* device) { return htobe64(Device::of(device).record().guid); }

int ibv_get_device_index(ibv_device* device) {
  return static_cast<int>(Device::of(device).record().index_on_host);
}

ibv_context* ibv_open_device(ibv_device* device) {
  Device& opened = Device::of(device);
  errno = opened.runtime->engine().start();
  if (errno != 0) return nullptr;
  softnic::EventPipe pipe{opened.index, opened.runtime->slot(), 0};
  beeline::UniqueFd events = softnic::make_event_pipe(opened.runtime->fabric(), pipe);
  if (!events) return nullptr;
  // Checked after the pipe was created: a removal from here on sends an event to it.
  if (opened.record().removals.load() != opened.removals_at_open) {
    softnic::remove_event_pipe(opened.runtime->fabric(), pipe);
    errno = ENODEV;
    return nullptr;
  }
  auto* context =
      new Context(opened.runtime, opened.index, opened.removals_at_open, pipe, std::move(events));
  softnic::install_operations(*context);
  context->context.device = device;
  opened.add_reference();
  return &context->context;
}

int ibv_close_device(ibv_context* context) {
  Context& closed = Context::of(context);
  if (!closed.runtime->is_ours()) return 0;
  // Objects that still exist become unusable, as with the kernel. Their memory is not freed.
  if (closed.objects.load() != 0) {
    closed.runtime->qps().for_each([&](softnic::Qp& qp) {
      if (qp.qp_base.context == context) qp.shut_down();
    });
    return 0;
  }
  Device& device = Device::of(context->device);
  delete &closed;
  device.drop_reference();
  return 0;
}

}  // extern "C"
