// SPDX-License-Identifier: Apache-2.0
//
// librdmacm's calls return -1 and set errno.
#include "plugin/verbs/cm_channel.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "common/base/log.h"
#include "plugin/verbs/check.h"

namespace beeline::verbs {

// --- Ids ---

CmId::CmId(std::shared_ptr<CmChannel> channel, rdma_cm_id* raw) noexcept
    : channel_(std::move(channel)), raw_(raw) {}

// After a disconnect, data that was sent still arrives. Without it the kernel resets the
// connection.
void CmId::reset() noexcept {
  rdma_cm_id* const old = std::exchange(raw_, nullptr);
  if (old == nullptr) return;
  if (std::exchange(is_connected_, false)) (void)api().disconnect(old);
  if (api().destroy_id(old) != 0) warn_not_freed("connection id", -1);
  channel_.reset();
}

const CmApi& CmId::api() const noexcept { return channel_->api(); }

std::string CmId::device() const {
  if (raw_ == nullptr || raw_->verbs == nullptr) return {};
  return raw_->verbs->device->name;
}

// The library's parameters are not const, although it does not change the addresses.
Status CmId::resolve_address(const sockaddr* from, const sockaddr* to, int patience_ms) {
  return from_minus_one(
      api().resolve_addr(raw_, const_cast<sockaddr*>(from), const_cast<sockaddr*>(to), patience_ms),
      "resolve the peer's address");
}

Status CmId::resolve_route(int patience_ms) {
  return from_minus_one(api().resolve_route(raw_, patience_ms), "resolve the route to the peer");
}

Status CmId::connect(const rdma_conn_param& param) {
  rdma_conn_param copy = param;
  return from_minus_one(api().connect(raw_, &copy), "connect the queue pair");
}

Status CmId::establish() { return from_minus_one(api().establish(raw_), "confirm the connection"); }

Status CmId::listen(const sockaddr* address, int backlog) {
  BL_TRY(from_minus_one(api().bind_addr(raw_, const_cast<sockaddr*>(address)),
                        "bind to the interface's address"));
  return from_minus_one(api().listen(raw_, backlog), "listen for connections of queue pairs");
}

std::uint16_t CmId::port() const noexcept { return ntohs(api().get_src_port(raw_)); }

Status CmId::accept(const rdma_conn_param& param) {
  rdma_conn_param copy = param;
  return from_minus_one(api().accept(raw_, &copy), "accept the queue pair's connection");
}

void CmId::reject() noexcept { (void)api().reject(raw_, nullptr, 0); }

Status CmId::set_tos(std::uint8_t tos) {
  return from_minus_one(
      api().set_option(raw_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos),
      "set the type of service");
}

Result<CmId::Step> CmId::step_to(ibv_qp_state state) {
  Step step;
  step.attr.qp_state = state;
  BL_TRY(from_minus_one(api().init_qp_attr(raw_, &step.attr, &step.mask),
                        "ask for the queue pair's next state"));
  return step;
}

// --- The channel ---

Result<std::unique_ptr<CmChannel>> CmChannel::create(const CmApi& api) {
  errno = 0;
  rdma_event_channel* const raw =
      BL_TRY(from_ptr(api.create_event_channel(), "open /dev/infiniband/rdma_cm"));
  auto channel = std::make_unique<CmChannel>(api, raw);
  const int flags = ::fcntl(raw->fd, F_GETFL);
  if (flags < 0 || ::fcntl(raw->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return fail_errno("make the events of librdmacm non-blocking");
  }
  return channel;
}

Result<CmId> CmChannel::make_id() {
  rdma_cm_id* raw = nullptr;
  BL_TRY(from_minus_one(api_->create_id(raw_, &raw, nullptr, RDMA_PS_TCP), "make a connection id"));
  return CmId(shared_from_this(), raw);
}

Result<std::optional<CmEvent>> CmChannel::next_event() {
  rdma_cm_event* raw = nullptr;
  if (api_->get_cm_event(raw_, &raw) != 0) {
    if (errno == EAGAIN || errno == EINTR) return std::optional<CmEvent>();
    return fail(Errc::kSystem, "read an event of librdmacm", errno);
  }
  CmEvent event;
  event.type = raw->event;
  event.status = raw->status;
  const bool is_request = raw->event == RDMA_CM_EVENT_CONNECT_REQUEST;
  event.id = is_request ? raw->listen_id : raw->id;
  // For other events, these bytes have another meaning or none.
  if (is_request && raw->param.conn.private_data != nullptr) {
    event.private_bytes =
        std::min<std::size_t>(raw->param.conn.private_data_len, event.private_data.size());
    std::memcpy(event.private_data.data(), raw->param.conn.private_data, event.private_bytes);
  }
  if (is_request) event.request = CmId(shared_from_this(), raw->id);
  (void)api_->ack_cm_event(raw);
  return std::optional<CmEvent>(std::move(event));
}

}  // namespace beeline::verbs
