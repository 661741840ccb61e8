// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/flush_rig.h"

#include <arpa/inet.h>

#include <string>
#include <utility>

#include "plugin/verbs/create.h"
#include "softnic/spec/spec_toml.h"
#include "tests/plugin/component/transfer_rig.h"

namespace beeline::test {
namespace {

softnic::FabricSpec fabric_of(std::size_t rails) {
  auto spec =
      softnic::parse_fabric("[[host]]\nname = \"h0\"\n[[host.device]]\nname = \"softnic[0-" +
                                std::to_string(rails - 1) + "]\"\n",
                            "rails.toml");
  if (!spec) throw MustError(spec.error().text);
  return *std::move(spec);
}

template <class T, class E>
T value_of(Result<T, E> result) {
  if (!result) throw MustError(Problem(result.error()).text);
  return std::move(*result);
}

// Counts the READs that the comm posts, by device context. There is one rig at a time.
struct ReadCounter {
  static int count(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
    for (const ibv_send_wr* one = work; one != nullptr; one = one->next) {
      if (one->opcode != IBV_WR_RDMA_READ) continue;
      for (std::size_t i = 0; i < contexts.size(); ++i) {
        if (contexts[i] == qp->context) ++reads[i];
      }
    }
    return real(qp, work, bad);
  }

  static inline std::vector<ibv_context*> contexts;
  static inline std::vector<int> reads;
  static inline int (*real)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
};

}  // namespace

// The comm would register it as memory of the host, which no device may READ. With an empty
// registration of each rail it does not.
FlushedMemory::FlushedMemory(RecvComm& comm, const std::vector<const Device*>& devices,
                             std::size_t size, std::uint8_t rails)
    : bytes_(size) {
  auto made = std::make_unique<MemoryHandle>();
  made->flush.any = true;
  made->rails = rails;
  made->buffer = {.data = bytes_.data(), .size = bytes_.size()};
  for (std::size_t rail = 0; rail < devices.size(); ++rail) {
    made->registrations.push_back(
        {.rail = static_cast<std::uint8_t>(rail), .device = devices[rail], .mr = {}});
    if ((rails >> rail & 1) == 0) continue;
    ibv_pd* const pd = value_of(devices[rail]->context->pd());
    MrPtr region(ibv_reg_mr(pd, bytes_.data(), bytes_.size(), kAllAccess));
    BL_MUST(region != nullptr);
    made->lkeys[rail] = region->lkey;
    made->rkeys[rail] = region->rkey;
    regions_.push_back(std::move(region));
  }
  handle_.reset(comm.buffers()->add(std::move(made)));
}

FlushRig::FlushRig(const FlushRigOptions& options)
    : fabric_(fabric_of(options.rails)),
      api_(value_of(verbs::load(SOFTNIC_LIBIBVERBS)).api),
      table_(value_of(DeviceTable::scan(api_, {}))),
      ring_(wire::kCreditRingBytes) {
  BL_MUST(table_->devices().size() == options.rails);
  devices_.assign(table_->devices().begin(), table_->devices().end());
  for (std::size_t rail = 0; rail < options.rails; ++rail) {
    if ((options.iwarp_rails >> rail & 1) != 0) devices_[rail].transport = Transport::kIwarp;
    rails_.push_back(&devices_[rail]);
    ReadCounter::contexts.push_back(devices_[rail].context->raw());
  }
  ReadCounter::reads.assign(options.rails, 0);
  for (ibv_context* const context : ReadCounter::contexts) {
    ReadCounter::real = context->ops.post_send;
    context->ops.post_send = &ReadCounter::count;
  }
  link_ = std::make_shared<FakeLink>();
  comm_ =
      std::make_unique<Guarded<RecvComm>>(std::make_unique<Connection>(connect(options)),
                                          CommOptions{.registration = &registration_}, StatsSlot());
}

FlushRig::~FlushRig() {
  for (ibv_context* const context : ReadCounter::contexts) {
    context->ops.post_send = ReadCounter::real;
  }
  ReadCounter::contexts.clear();
}

Connection FlushRig::connect(const FlushRigOptions& options) {
  const std::size_t paths = options.rails * options.paths_on_a_rail;
  const CommPlan plan = RecvComm::plan(paths);
  Connection made;
  made.role = Role::kReceive;
  made.link = link_;
  made.devices = rails_;
  made.receiver_rails = options.rails;
  made.planned_paths = paths;
  made.extra = extra_memory(plan);
  made.memory = value_of(ControlBlock::create(plan.memory_bytes));
  for (const Device& device : devices_) {
    const Status attached = made.memory.attach(api_, value_of(device.context->pd()));
    BL_MUST(attached.has_value());
  }
  made.window.address = reinterpret_cast<std::uint64_t>(ring_.data());
  made.window.length = ring_.size();
  for (std::size_t i = 0; i < paths; ++i) {
    made.paths.push_back(make_path(options, plan, i));
    MrPtr region(ibv_reg_mr(peers_[i].pd.get(), ring_.data(), ring_.size(), kAllAccess));
    BL_MUST(region != nullptr);
    made.window.rkeys[i] = region->rkey;
    ring_regions_.push_back(std::move(region));
  }
  return made;
}

// The peer has as many rails as there are paths.
PathResources FlushRig::make_path(const FlushRigOptions& options, const CommPlan& plan,
                                  std::size_t index) {
  const std::size_t rail = index % options.rails;
  PathResources path = make_unconnected_path(devices_[rail], plan);
  path.rail = static_cast<std::uint8_t>(rail);
  path.peer_rail = static_cast<std::uint8_t>(index);
  Endpoint& peer = peers_.emplace_back(path.device->ibdev);
  connect_both(path.queues.qp.get(), peer.qp);
  return path;
}

Request* FlushRig::receive(std::span<const ReceiveBuffer> buffers) {
  Request* const request = value_of(irecv(*comm_, buffers));
  BL_MUST(request != nullptr);
  next_position_ += static_cast<std::uint32_t>(buffers.size());
  return request;
}

Request* FlushRig::receive(FlushedMemory& into, std::size_t offset) {
  const ReceiveBuffer buffer = {
      .data = into.at(offset), .capacity = 64, .tag = 0, .memory = &into.handle()};
  return receive({&buffer, 1});
}

void FlushRig::arrive(std::size_t path, std::uint32_t position) {
  SendWork work = nothing_work();
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm = htonl(wire::pack({.line = static_cast<std::uint16_t>(position), .generation = 0}));
  BL_MUST_OK(post(peers_[path].qp, work));
  BL_MUST(poll_one(peers_[path].send_cq.get()).status == IBV_WC_SUCCESS);
}

void FlushRig::carry(std::size_t path, FlushedMemory& into, std::size_t offset) {
  const std::uint32_t position = next_position_;
  Request* const request = receive(into, offset);
  arrive(path, position);
  finish(request);
}

Request* FlushRig::flush(std::span<const FlushTarget> targets) {
  void* made = nullptr;
  BL_MUST(comm_->iflush(targets, &made) == Errc::kOk);
  return static_cast<Request*>(made);
}

void FlushRig::finish(Request* request) {
  int sizes[wire::kMaxReceives];
  wait_until([&] { return value_of(test_once(*request, sizes)); }, "a request");
}

std::vector<int> FlushRig::take_reads() {
  return std::exchange(ReadCounter::reads, std::vector<int>(rails_.size()));
}

}  // namespace beeline::test
