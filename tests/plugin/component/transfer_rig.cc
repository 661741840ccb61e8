// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/transfer_rig.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "plugin/transfer/test_request.h"
#include "plugin/verbs/qp_steps.h"

namespace beeline::test {
namespace {

template <class T, class E>
T must(Result<T, E> result) {
  if (!result) throw MustError(Problem(result.error()).text);
  return std::move(*result);
}

void must(const Status& status) {
  if (!status) throw MustError(describe(status.error()));
}

std::uint8_t gid_index(const Device& device) {
  for (const GidEntry& entry : device.facts.gids) {
    if (entry.type == GidType::kRoceV2) return static_cast<std::uint8_t>(entry.index);
  }
  throw MustError("the device has no RoCE v2 address");
}

// Each path is a rail of its own, on the same device.
Connection half(const Device& device, Role role, const TransferOptions& options) {
  const bool sends = role == Role::kSend;
  const std::size_t planned = options.paths + options.missing_paths;
  const CommPlan plan = sends ? SendComm::plan(planned) : RecvComm::plan(planned);
  Connection made;
  made.role = role;
  made.memory = must(ControlBlock::create(plan.memory_bytes));
  made.receiver_rails = options.paths;
  made.planned_paths = planned;
  made.extra = extra_memory(plan);
  for (std::size_t rail = 0; rail < options.paths; ++rail) {
    must(made.memory.attach(device.api(), must(device.context->pd())));
    made.paths.push_back(make_unconnected_path(device, plan));
    made.paths.back().notify = options.notify;
    made.paths.back().rail = made.paths.back().peer_rail = static_cast<std::uint8_t>(rail);
  }
  return made;
}

// One path. The other end's queue pair has this number.
void join(PathResources& mine, std::uint32_t peer_qpn) {
  const Device& device = *mine.device;
  const verbs::Qp& qp = mine.queues.qp;
  mine.peer_qpn = peer_qpn;
  must(verbs::to_init(qp,
                      {.port = device.port, .pkey_index = 0, .access = IBV_ACCESS_REMOTE_WRITE}));
  verbs::RtrParams rtr;
  rtr.dest_qpn = peer_qpn;
  const std::uint8_t index = gid_index(device);
  rtr.path = {.port = device.port, .is_global = true, .sgid_index = index};
  if (device.api().query_gid(device.context->raw(), device.port, index, &rtr.path.dgid) != 0) {
    throw MustError("query_gid");
  }
  must(verbs::to_rtr(qp, rtr));
  must(verbs::to_rts(qp, {.timeout = 14}));
}

}  // namespace

PathResources make_unconnected_path(const Device& device, const CommPlan& plan) {
  PathResources path;
  path.device = &device;
  const auto entries = plan.send_depth + plan.receive_depth + plan.flush_depth;
  path.queues.cq =
      must(verbs::create_cq(device.api(), device.context->raw(), static_cast<int>(entries)));
  auto qp = must(verbs::create_qp(device.api(), must(device.context->pd()),
                                  {.send_cq = path.queues.cq.get(),
                                   .recv_cq = path.queues.cq.get(),
                                   .send_depth = plan.send_depth,
                                   .recv_depth = plan.receive_depth,
                                   .max_inline = plan.inline_bytes}));
  path.queues.max_inline = qp.granted.max_inline_data;
  path.queues.qp = std::move(qp.qp);
  return path;
}

CommMemory extra_memory(const CommPlan& plan) {
  if (plan.extra_bytes == 0) return nullptr;
  return CommMemory(
      static_cast<std::byte*>(::operator new (plan.extra_bytes, std::align_val_t{kCommAlignment})));
}

Storage::Storage(std::span<const std::unique_ptr<MrCache>> caches, std::size_t size,
                 unsigned char fill)
    : bytes_(size, fill) {
  for (std::size_t rail = 0; rail < caches.size(); ++rail) {
    auto registered = must(caches[rail]->acquire({.address = bytes_.data(), .length = size}));
    handle_.lkeys[rail] = registered.lkey();
    handle_.rkeys[rail] = registered.rkey();
    handle_.rails = static_cast<std::uint8_t>(handle_.rails | 1U << rail);
    handle_.registrations.push_back({.rail = 0, .device = nullptr, .mr = std::move(registered)});
  }
}

void Storage::leave_out(std::size_t rail) {
  handle_.lkeys[rail] = handle_.rkeys[rail] = 0;
  handle_.rails = static_cast<std::uint8_t>(handle_.rails & ~(1U << rail));
}

Result<Request*> isend(SendComm& comm, Storage& from, std::size_t size, int tag, std::size_t at) {
  void* made = nullptr;
  Errc code = Errc::kOk;
  const auto* const data = from.data() + at;
  const MemoryHandle& memory = from.handle();
  const Comm::Credit credit = comm.look_for_credit();
  if (credit.state == Comm::Credit::kNone) return nullptr;
  SendComm::Begun begun = SendComm::Begun::kSlow;
  if (credit.state == Comm::Credit::kHasCome)
    begun = comm.begin_isend(credit.order, data, size, tag, &memory, &made);
  if (begun == SendComm::Begun::kGrouped)
    begun = comm.hold_grouped(data, size, tag, &memory, &made);
  switch (begun) {
    case SendComm::Begun::kGrouped:
    case SendComm::Begun::kHeld: break;
    case SendComm::Begun::kPrepared: code = comm.post_prepared<Paths::kOne>(); break;
    case SendComm::Begun::kGroup: code = comm.post_held(); break;
    case SendComm::Begun::kSlow:
      if (comm.enter_if_fast(Role::kSend, Paths::kSeveral) &&
          comm.begin_on_several(data, size, tag, memory, &made)) {
        code = comm.post_prepared<Paths::kSeveral>();
      } else {
        code = comm.isend(data, size, tag, memory, &made);
      }
      break;
  }
  if (code != Errc::kOk) return fail(code, "isend");
  return static_cast<Request*>(made);
}

template <Paths kPaths>
static bool irecv_if_fast(RecvComm& comm, const ReceiveBuffer& buffer, void** made, Errc& code) {
  if (!comm.enter_if_fast(Role::kReceive, kPaths)) return false;
  if (!comm.begin_grant<kPaths>(buffer.capacity, buffer.memory)) return false;
  comm.write_grant<kPaths>(buffer, made);
  code = comm.post_written<kPaths>();
  return true;
}

Result<Request*> irecv(RecvComm& comm, std::span<const ReceiveBuffer> buffers, Need need) {
  void* made = nullptr;
  Errc code = Errc::kOk;
  const bool is_one = buffers.size() == 1 && need == Need::kArrival;
  const bool is_fast =
      is_one && (irecv_if_fast<Paths::kOne>(comm, buffers.front(), &made, code) ||
                 irecv_if_fast<Paths::kSeveral>(comm, buffers.front(), &made, code));
  if (!is_fast) {
    code = comm.irecv(
        static_cast<std::uint32_t>(buffers.size()), [&](std::uint32_t i) { return buffers[i]; },
        need, &made);
  }
  if (code != Errc::kOk) return fail(code, "irecv");
  return static_cast<Request*>(made);
}

Result<bool> test_once(Request& request, int* sizes) {
  int done = 0;
  Errc code = Errc::kOk;
  if (request.missing != 0) {
    code = with_end(*request.comm, [&]<class End>(End& end) {
      return end.is_fast(End::kRole) ? Comm::test_fast(end, request, &done, sizes)
                                     : end.test(request, &done, sizes);
    });
  } else {
    request.comm->finish(request, &done, sizes);
  }
  if (code != Errc::kOk) return fail(code, "test");
  return done != 0;
}

TransferRig::TransferRig(const TransferOptions& options)
    : api_(must(verbs::load(SOFTNIC_LIBIBVERBS)).api), table_(must(DeviceTable::scan(api_, {}))) {
  BL_MUST(!table_->devices().empty());
  device_ = table_->devices().front();
  if (options.largest_write != 0) device_.caps.max_msg_bytes = options.largest_write;
  for (std::size_t rail = 0; rail < options.paths; ++rail) {
    caches_.push_back(std::make_unique<MrCache>(api_, must(device_.context->pd()), false));
  }
  connect(options);
}

void TransferRig::connect(const TransferOptions& options) {
  Connection send = half(device_, Role::kSend, options);
  Connection receive = half(device_, Role::kReceive, options);
  send.link = sender_link_;
  receive.link = receiver_link_;
  ring_ = send.memory.at<wire::CreditLine>();
  receive.window.address = send.memory.address();
  receive.window.length = wire::kCreditRingBytes;
  for (std::size_t rail = 0; rail < options.paths; ++rail) {
    receive.window.rkeys[rail] = send.memory.rkey(rail);
    join(send.paths[rail], receive.paths[rail].queues.qp->qp_num);
    join(receive.paths[rail], send.paths[rail].queues.qp->qp_num);
  }
  const CommOptions comm = {
      .routed_above = options.routed_above, .stall_ns = options.stall_ns, .pkey = options.pkey};
  sender_ = std::make_unique<Guarded<SendComm>>(std::make_unique<Connection>(std::move(send)), comm,
                                                page_.acquire(SlotRole::kSend, "rig"));
  receiver_ = std::make_unique<Guarded<RecvComm>>(std::make_unique<Connection>(std::move(receive)),
                                                  comm, page_.acquire(SlotRole::kReceive, "rig"));
}

Request* TransferRig::send(Storage& from, std::size_t size, int tag, std::size_t at) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    Request* const request = must(isend(*sender_, from, size, tag, at));
    if (request != nullptr) return request;
  }
  throw MustError("no credit arrived");
}

Request* TransferRig::receive(Storage& into, std::size_t capacity, int tag, std::size_t at) {
  const ReceiveBuffer buffer = {
      .data = into.data() + at, .capacity = capacity, .tag = tag, .memory = &into.handle()};
  Request* const request = must(irecv(*receiver_, {&buffer, 1}));
  BL_MUST(request != nullptr);
  return request;
}

int TransferRig::finish(Request* request) { return finish_all(request, 1).front(); }

std::vector<int> TransferRig::finish_all(Request* request, std::size_t count) {
  std::vector<int> sizes(count, -1);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (must(test_once(*request, sizes.data()))) return sizes;
  }
  throw MustError("a request was never done");
}

}  // namespace beeline::test
