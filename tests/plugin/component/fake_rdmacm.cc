// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/fake_rdmacm.h"

#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "plugin/device/gid_choice.h"
#include "tests/plugin/component/device_rig.h"
#include "tests/support/must.h"

namespace beeline::test {
namespace {

std::atomic<FakeRdmacm*> only{nullptr};

constexpr std::uint32_t kPsn = 0x1234;

const GidEntry& gid_at(const Device& device, std::uint16_t index) {
  const auto& gids = device.facts.gids;
  return *std::ranges::find(gids, index, &GidEntry::index);
}

}  // namespace

FakeRdmacm& FakeRdmacm::current() { return *only; }

FakeRdmacm::FakeRdmacm(const Device& listening, const Device& connecting)
    : listening_(&listening), connecting_(&connecting) {
  only = this;
  api_.create_event_channel = [] { return current().create_channel(); };
  api_.destroy_event_channel = [](rdma_event_channel* channel) {
    current().destroy_channel(of(channel));
  };
  api_.get_cm_event = [](rdma_event_channel* channel, rdma_cm_event** event) {
    return current().get_event(of(channel), event);
  };
  api_.ack_cm_event = [](rdma_cm_event* event) {
    const std::lock_guard lock(current().mutex_);
    --current().unacknowledged_;
    delete event;
    return 0;
  };
  api_.create_id = [](rdma_event_channel* channel, rdma_cm_id** id, void*, rdma_port_space) {
    return current().create_id(channel, id);
  };
  api_.destroy_id = [](rdma_cm_id* id) { return current().destroy_id(of(id)); };
  api_.bind_addr = [](rdma_cm_id* id, sockaddr*) {
    const std::lock_guard lock(current().mutex_);
    current().choose_device(of(id), *current().listening_);
    return 0;
  };
  api_.listen = [](rdma_cm_id* id, int) { return current().listen(of(id)); };
  api_.get_src_port = [](rdma_cm_id* id) { return htons(of(id).port); };
  api_.resolve_addr = [](rdma_cm_id* id, sockaddr*, sockaddr*, int) {
    const std::lock_guard lock(current().mutex_);
    current().choose_device(of(id), *current().connecting_);
    current().tell(of(id), RDMA_CM_EVENT_ADDR_RESOLVED);
    return 0;
  };
  api_.resolve_route = [](rdma_cm_id* id, int) {
    const std::lock_guard lock(current().mutex_);
    current().tell(of(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
    return 0;
  };
  api_.connect = [](rdma_cm_id* id, rdma_conn_param* param) {
    return current().connect(of(id), *param);
  };
  api_.accept = [](rdma_cm_id* id, rdma_conn_param* param) {
    return current().accept(of(id), *param);
  };
  api_.establish = [](rdma_cm_id* id) {
    const std::lock_guard lock(current().mutex_);
    if (of(id).peer != nullptr) current().tell(*of(id).peer, RDMA_CM_EVENT_ESTABLISHED);
    return 0;
  };
  api_.reject = [](rdma_cm_id* id, const void*, std::uint8_t) {
    const std::lock_guard lock(current().mutex_);
    ++current().rejects_;
    if (of(id).peer != nullptr) current().tell(*of(id).peer, RDMA_CM_EVENT_REJECTED);
    return 0;
  };
  api_.disconnect = [](rdma_cm_id* id) {
    const std::lock_guard lock(current().mutex_);
    ++current().disconnects_;
    current().leave(of(id));
    return 0;
  };
  api_.set_option = [](rdma_cm_id*, int, int, void*, std::size_t) { return 0; };
  api_.init_qp_attr = [](rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
    const std::lock_guard lock(current().mutex_);
    return current().next_state(of(id), *attr, *mask);
  };
}

FakeRdmacm::~FakeRdmacm() {
  only = nullptr;
  for (Id* const id : ids_) delete id;  // of requests that were never read
}

// --- Faults to inject, and counters ---

void FakeRdmacm::fail_next(rdma_cm_event_type good, rdma_cm_event_type bad, int status) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({good, bad, status});
}

void FakeRdmacm::refuse_listen(int times, int sys_errno) {
  const std::lock_guard lock(mutex_);
  listen_refusals_ = times;
  listen_errno_ = sys_errno;
}

void FakeRdmacm::take_device(const Device& connecting) {
  const std::lock_guard lock(mutex_);
  connecting_ = &connecting;
}

void FakeRdmacm::disconnect(const Device& device, std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      ids_, [&](const Id* id) { return id->device == &device && id->qpn == qpn; });
  BL_MUST(found != ids_.end());
  tell(**found, RDMA_CM_EVENT_DISCONNECTED);
}

void FakeRdmacm::knock(const std::vector<std::uint8_t>& private_data) {
  const std::lock_guard lock(mutex_);
  BL_MUST(listener_ != nullptr);
  request(nullptr, private_data);
}

std::size_t FakeRdmacm::ids() const {
  const std::lock_guard lock(mutex_);
  return ids_.size();
}
std::size_t FakeRdmacm::rejects() const {
  const std::lock_guard lock(mutex_);
  return rejects_;
}
std::size_t FakeRdmacm::disconnects() const {
  const std::lock_guard lock(mutex_);
  return disconnects_;
}
int FakeRdmacm::unacknowledged() const {
  const std::lock_guard lock(mutex_);
  return unacknowledged_;
}

// --- Channels and events ---

rdma_event_channel* FakeRdmacm::create_channel() {
  auto* const channel = new Channel;
  channel->raw.fd = eventfd(0, EFD_CLOEXEC);
  return &channel->raw;
}

void FakeRdmacm::destroy_channel(Channel& channel) {
  ::close(channel.raw.fd);
  for (rdma_cm_event* const event : channel.events) delete event;
  delete &channel;
}

int FakeRdmacm::get_event(Channel& channel, rdma_cm_event** event) {
  const std::lock_guard lock(mutex_);
  if (channel.events.empty()) {
    eventfd_t count = 0;
    eventfd_read(channel.raw.fd, &count);
    errno = EAGAIN;
    return -1;
  }
  *event = channel.events.front();
  channel.events.pop_front();
  ++unacknowledged_;
  return 0;
}

void FakeRdmacm::tell(Id& id, rdma_cm_event_type type, Id* listener) {
  auto* const event = new rdma_cm_event{};
  event->id = &id.raw;
  event->event = type;
  if (listener != nullptr) {
    event->listen_id = &listener->raw;
    event->param.conn.private_data = id.private_data.data();
    event->param.conn.private_data_len = static_cast<std::uint8_t>(id.private_data.size());
  }
  const auto fault = std::ranges::find(faults_, type, &Fault::good);
  if (fault != faults_.end()) {
    event->event = fault->bad;
    event->status = fault->status;
    faults_.erase(fault);
  }
  of(id.raw.channel).events.push_back(event);
  eventfd_write(id.raw.channel->fd, 1);
}

// --- Ids ---

int FakeRdmacm::create_id(rdma_event_channel* channel, rdma_cm_id** raw) {
  const std::lock_guard lock(mutex_);
  *raw = &make_id(channel).raw;
  return 0;
}

FakeRdmacm::Id& FakeRdmacm::make_id(rdma_event_channel* channel) {
  auto* const id = new Id;
  id->raw.channel = channel;
  ids_.insert(id);
  return *id;
}

int FakeRdmacm::destroy_id(Id& id) {
  const std::lock_guard lock(mutex_);
  leave(id);
  if (listener_ == &id) listener_ = nullptr;
  // Unread events are deleted with their id.
  auto& events = of(id.raw.channel).events;
  std::erase_if(events, [&](rdma_cm_event* event) {
    if (event->id != &id.raw) return false;
    delete event;
    return true;
  });
  ids_.erase(&id);
  delete &id;
  return 0;
}

void FakeRdmacm::leave(Id& id) {
  if (id.peer == nullptr) return;
  tell(*id.peer, RDMA_CM_EVENT_DISCONNECTED);
  id.peer->peer = nullptr;
  id.peer = nullptr;
}

void FakeRdmacm::choose_device(Id& id, const Device& device) {
  id.device = &device;
  id.raw.verbs = device.context->raw();
}

int FakeRdmacm::listen(Id& id) {
  const std::lock_guard lock(mutex_);
  if (listen_refusals_ > 0) {
    --listen_refusals_;
    errno = listen_errno_;
    return -1;
  }
  id.port = ++last_port_;
  listener_ = &id;
  return 0;
}

int FakeRdmacm::connect(Id& id, const rdma_conn_param& param) {
  const std::lock_guard lock(mutex_);
  BL_MUST(listener_ != nullptr);
  const auto* const data = static_cast<const std::uint8_t*>(param.private_data);
  id.qpn = param.qp_num;
  request(&id, {data, data + param.private_data_len});
  return 0;
}

void FakeRdmacm::request(Id* from, std::vector<std::uint8_t> data) {
  Id& made = make_id(listener_->raw.channel);
  choose_device(made, *listening_);
  made.private_data = std::move(data);
  made.private_data.resize(made.private_data.size() + 20);  // as InfiniBand pads them
  made.peer = from;
  if (from != nullptr) from->peer = &made;
  tell(made, RDMA_CM_EVENT_CONNECT_REQUEST, listener_);
}

int FakeRdmacm::accept(Id& id, const rdma_conn_param& param) {
  const std::lock_guard lock(mutex_);
  id.qpn = param.qp_num;
  if (id.peer == nullptr) return 0;
  if (find_pair_ == nullptr) {
    tell(*id.peer, RDMA_CM_EVENT_CONNECT_RESPONSE);
    return 0;
  }
  for (Id* const end : {&id, id.peer}) {
    move_to_rts(*end);
    tell(*end, RDMA_CM_EVENT_ESTABLISHED);
  }
  return 0;
}

void FakeRdmacm::move_to_rts(Id& id) {
  ibv_qp* const qp = find_pair_(id.raw.verbs, id.qpn);
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    attr.min_rnr_timer = 12;
    attr.timeout = 20;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    int mask = 0;
    BL_MUST_OK(next_state(id, attr, mask));
    BL_MUST_OK(softnic_api().modify_qp(qp, &attr, mask));
  }
}

int FakeRdmacm::next_state(Id& id, ibv_qp_attr& attr, int& mask) {
  if (attr.qp_state == IBV_QPS_INIT) {
    attr.port_num = id.device->port;
    mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    return 0;
  }
  if (attr.qp_state == IBV_QPS_RTS) {
    attr.sq_psn = kPsn;
    attr.max_rd_atomic = 1;
    mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
    return 0;
  }
  if (id.peer == nullptr) {
    errno = EINVAL;
    return -1;
  }
  const Device& there = *id.peer->device;
  const auto gids = choose_gids({.table = id.device->facts.gids, .policy = {}, .who = "here"},
                                {.table = there.facts.gids, .policy = {}, .who = "there"});
  BL_MUST(gids);
  attr.path_mtu = id.device->facts.active_mtu;
  attr.rq_psn = kPsn;
  attr.dest_qp_num = id.peer->qpn;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr.port_num = id.device->port;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gids->local_index);
  attr.ah_attr.grh.hop_limit = 64;
  const Gid& gid = gid_at(there, gids->remote_index).gid;
  std::memcpy(attr.ah_attr.grh.dgid.raw, gid.data(), gid.size());
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return 0;
}

}  // namespace beeline::test
